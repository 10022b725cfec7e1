"""An https upstream: its certificate is checked, and HTTP/1.1 is spoken to it."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from store.db import Capture
from tests.conftest import locality, process, proxy
from tests.proxy.bare import Between, Client, post
from tests.upstream.bare import OK, BareUpstream

HOUR = datetime.timedelta(hours=1)


class Authority:
    """A certificate authority of the test's own; `file` is what trusts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = self._builder(self.name, self.key.public_key()).add_extension(constraints, critical=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(_pem(builder.sign(self.key, hashes.SHA256())))

    def serves(self, address: str) -> ssl.SSLContext:
        """A server's context with a certificate for an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test server")])
        certificate = self._builder(name, key.public_key()).add_extension(names, critical=False)
        file = self.folder / f"server-{address.replace(':', '-')}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + _pem(certificate.sign(self.key, hashes.SHA256())))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - HOUR)
            .not_valid_after(now + HOUR)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextmanager
def behind(folder: Path, context: ssl.SSLContext, *options: str) -> Iterator[Between]:
    """A proxy in front of an https upstream."""
    capture = folder / "c.sqlite"
    with (
        BareUpstream(tls=context) as upstream,
        proxy(upstream.url, capture, *options) as running,
        ExitStack() as connections,
    ):
        yield Between(upstream, running, capture, connections)


def refusal(client: Client) -> str:
    """Why the proxy answers 502."""
    head, _, body = client.read_all().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 ")
    return str(json.loads(body)["error"]["message"])


def test_an_https_upstream_is_reached_where_its_authority_is_trusted(
    tmp_path: Path, authority: Authority
) -> None:
    with behind(tmp_path, authority.serves("127.0.0.1"), "--cacert", str(authority.file)) as setup:
        client = setup.client()
        client.send(post())
        taken = setup.take()
        assert b"\r\nHost: 127.0.0.1:%d\r\n" % setup.upstream.port in taken.data
        taken.send(OK)
        assert client.read_until(b"{}") == OK
        assert setup.recorded().ended == "complete"
        setup.proxy.stop()
    with Capture.open(str(setup.capture)) as capture:
        # The proxy's own questions trust the same authority.
        assert {fact.status for fact in capture.facts()} == {404}


def test_an_authority_is_trusted_that_the_system_is_told_of(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with behind(tmp_path, authority.serves("127.0.0.1")) as setup:
        client = setup.client()
        client.send(post())
        setup.take().send(OK)
        assert client.read_until(b"{}") == OK


def test_an_untrusted_certificate_gives_502_and_says_what_to_do(tmp_path: Path, authority: Authority) -> None:
    with behind(tmp_path, authority.serves("127.0.0.1")) as setup:
        client = setup.client()
        client.send(post())
        told = refusal(client)
        assert "Certificate verify failed" in told
        assert "--cacert FILE" in told
        assert "mitmproxy" not in told
        assert setup.upstream.connections == 0
        exchange = setup.recorded()
        assert (exchange.ended, exchange.error) == ("reset", told)
        assert exchange.request.content == b"{}"


def test_a_certificate_for_another_address_is_refused(tmp_path: Path, authority: Authority) -> None:
    with behind(tmp_path, authority.serves("127.0.0.2"), "--cacert", str(authority.file)) as setup:
        client = setup.client()
        client.send(post())
        assert "Certificate verify failed" in refusal(client)


def test_without_a_check_the_upstream_is_reached_and_the_user_warned(
    tmp_path: Path, authority: Authority
) -> None:
    with behind(tmp_path, authority.serves("127.0.0.1"), "--insecure") as setup:
        client = setup.client()
        client.send(post())
        setup.take().send(OK)
        assert client.read_until(b"{}") == OK
        url, capture = setup.upstream.url, str(tmp_path / "other.sqlite")
        ran = process("run", "--upstream", url, "--capture", capture, "--insecure", "--", "true")
    assert f"WARNING: the certificate of {url} is not checked" in ran.stderr


def test_http_1_1_is_asked_for_where_an_upstream_has_both(tmp_path: Path, authority: Authority) -> None:
    context = authority.serves("127.0.0.1")
    context.set_alpn_protocols(["h2", "http/1.1"])
    with behind(tmp_path, context, "--cacert", str(authority.file)) as setup:
        client = setup.client()
        client.send(post())
        taken = setup.take()
        assert isinstance(taken.sock, ssl.SSLSocket)
        assert taken.sock.selected_alpn_protocol() == "http/1.1"
        taken.send(OK)
        assert client.read_until(b"{}") == OK


@pytest.mark.parametrize("options", [("--cacert", __file__), ("--insecure", "--cacert", __file__)])
def test_a_file_without_certificates_or_beside_insecure_is_wrong_usage(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    capture = str(tmp_path / "c.sqlite")
    ended = locality("proxy", "--upstream", "https://127.0.0.1:1", "--capture", capture, *options)
    assert ended.returncode == 2
    assert "--upstream: " in ended.stderr
    assert not Path(capture).exists()


def test_an_upstream_of_http_2_alone_gives_502_at_once(tmp_path: Path, authority: Authority) -> None:
    context = authority.serves("127.0.0.1")
    context.set_alpn_protocols(["h2"])
    with behind(tmp_path, context, "--cacert", str(authority.file)) as setup:
        client = setup.client()
        client.send(post())
        # Such a server either breaks off the handshake, or goes on and finds no preface of HTTP/2.
        setup.take().send(b"\0\0\0\x04\0\0\0\0\0")
        assert "HTTP/2" in refusal(client)
