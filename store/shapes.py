"""Shapes of credentials that detect-secrets lacks, or knows only in part: prefixes, envelopes, contexts.

Nothing is searched here. Each vendor's documentation of its key format is the source; a shape that also fits
ordinary words asks for a digit.
"""

from __future__ import annotations

_TAIL = r"[A-Za-z0-9_-]"
_HEAD = r"(?<![A-Za-z0-9_-])"

SHAPES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?s:.){0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,-]*)",
        ("private key",),
    ),
    ("private-key", r"PuTTY-User-Key-File-\d(?s:.){0,20000}?(?:Private-MAC: *[0-9a-f]+|\Z)", ("putty-user",)),
    ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", ("age-secret",)),
    ("anthropic-key", rf"(?<![A-Za-z0-9])sk-ant-{_TAIL}{{16,}}", ("sk-ant-",)),
    ("openai-key", rf"(?<![A-Za-z0-9])sk-(?:proj|svcacct|admin|None)-{_TAIL}{{16,}}", ("sk-",)),
    ("api-key", rf"{_HEAD}sk-(?:[a-z0-9]{{2,8}}-){{1,3}}(?={_TAIL}*\d){_TAIL}{{20,}}", ("sk-",)),
    ("api-key", rf"{_HEAD}sk-[A-Za-z0-9]{{20,}}", ("sk-",)),
    ("google-key", rf"AIza{_TAIL}{{35}}", ("aiza",)),
    ("google-token", rf"{_HEAD}ya29\.{_TAIL}{{20,}}", ("ya29.",)),
    ("huggingface-token", r"(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{30,}", ("hf_", "api_org_")),
    ("github-token", r"github_pat_[A-Za-z0-9_]{22,}", ("github_pat_",)),
    ("github-token", r"gh[pousr]_[A-Za-z0-9_]{36,}", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    ("gitlab-token", rf"gl[a-z]{{2,6}}-{_TAIL}{{20,}}", ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-")),
    ("groq-key", rf"{_HEAD}gsk_[A-Za-z0-9]{{40,}}", ("gsk_",)),
    ("xai-key", rf"{_HEAD}xai-[A-Za-z0-9]{{40,}}", ("xai-",)),
    ("nvidia-key", rf"{_HEAD}nvapi-{_TAIL}{{40,}}", ("nvapi-",)),
    ("replicate-token", rf"{_HEAD}r8_[A-Za-z0-9]{{36,}}", ("r8_",)),
    ("perplexity-key", rf"{_HEAD}pplx-[A-Za-z0-9]{{40,}}", ("pplx-",)),
    ("tavily-key", rf"{_HEAD}tvly-{_TAIL}{{20,}}", ("tvly-",)),
    ("langsmith-key", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}", ("lsv2_",)),
    ("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", ("_v1_",)),
    ("docker-token", rf"dckr_(?:pat|oat)_{_TAIL}{{20,}}", ("dckr_",)),
    ("vault-token", rf"{_HEAD}hv[sbr]\.{_TAIL}{{24,}}", ("hvs.", "hvb.", "hvr.")),
    ("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", ("shpat_", "shpca_", "shppa_", "shpss_")),
    ("slack-token", rf"xapp-\d-{_TAIL}{{20,}}|xox[abeoprs]-{_TAIL}{{20,}}", ("xapp-", "xox")),
    (
        "stripe-key",
        r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}",
        ("k_live_", "k_test_", "whsec_"),
    ),
    ("npm-token", r"npm_[A-Za-z0-9]{36}", ("npm_",)),
    ("npm-token", r"_authToken\s*=\s*([A-Za-z0-9_=+/.-]{16,})", ("_authtoken",)),
    (
        "aws-secret-key",
        r"(?i:secret_?-?(?:access)?_?-?key|aws_?secret)[^A-Za-z0-9+/\n]{1,12}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        ("secret",),
    ),
    ("aws-session-token", r"(?i:session_?token)[^A-Za-z0-9+/\n]{1,12}([A-Za-z0-9/+=]{100,})", ("session",)),
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,2000}=*\.[A-Za-z0-9_-]{8,}=*(?:\.[A-Za-z0-9_=+/-]*){0,3}", ("eyj",)),
    ("bearer", r"(?i:bearer)\s{1,3}(?=[A-Za-z_.~+/=-]*\d)([A-Za-z0-9._~+/=-]{16,})", ("bearer",)),
    (
        "basic-auth",
        r"(?i:authorization)[\"'\\ ]{0,6}[:=,][\"'\\ ]{0,6}(?i:basic)\s+([A-Za-z0-9+/=]{8,})",
        ("basic",),
    ),
    ("basic-auth", r"(?i:(?<![a-z0-9])basic)\s+(?=[A-Za-z+/=]*\d)([A-Za-z0-9+/]{16,}={0,2})", ("basic",)),
    ("google-client-secret", r"GOCSPX-[A-Za-z0-9_-]{20,}", ("gocspx-",)),
    ("google-token", rf"{_HEAD}1//0{_TAIL}{{38,}}", ("1//0",)),
    ("azure-client-secret", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])", ("q~",)),
    ("azure-shared-key", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)", ("sharedaccesskey=",)),
    (
        "url-signature",
        r"[?&;](?:sig|Signature|X-Amz-Signature)=([A-Za-z0-9%+/=_-]{20,})",
        ("sig=", "signature="),
    ),
    ("aws-session-token", r"X-Amz-Security-Token=([A-Za-z0-9%+/=_-]{40,})", ("x-amz-security-token",)),
    ("mailgun-key", r"(?<![A-Za-z0-9-])key-[0-9a-f]{32}(?![0-9a-f])", ("key-",)),
    ("databricks-token", r"(?<![A-Za-z0-9])dapi[0-9a-f]{32}(?:-\d)?(?![0-9a-z])", ("dapi",)),
    ("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", ("lin_",)),
    (
        "notion-token",
        r"(?<![A-Za-z0-9_])(?:secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"
        r"|ntn_[A-Za-z0-9]{40,})",
        ("secret_", "ntn_"),
    ),
    ("figma-token", rf"figd_{_TAIL}{{35,}}", ("figd_",)),
    (
        "newrelic-key",
        r"NR(?:AK|JS|II|IQ|RA)-[A-Za-z0-9_-]{19,}|(?<![0-9a-f])[0-9a-f]{36}NRAL",
        ("nrak-", "nrjs-", "nrii-", "nriq-", "nrra-", "nral"),
    ),
    ("sentry-token", r"sntry[su]_[A-Za-z0-9_+/=-]{{40,}}", ("sntry",)),
    ("square-token", rf"sq0(?:atp|csp|idp)-{_TAIL}{{22,}}|{_HEAD}EAAA[A-Za-z0-9_-]{{56,}}", ("sq0", "eaaa")),
    ("heroku-key", rf"HRKU-{_TAIL}{{36,}}", ("hrku-",)),
    ("artifactory", r"AKC[A-Za-z0-9]{47,}|cmVmdGtu[A-Za-z0-9]{40,}", ("akc", "cmvmdgtu")),
    ("grafana-token", r"gl(?:sa|c)_[A-Za-z0-9_+/=-]{32,}", ("glsa_", "glc_")),
    ("postman-key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", ("pmak-",)),
    ("atlassian-token", r"AT(?:ATT|CTT|BB)[A-Za-z0-9_=-]{28,}(?![A-Za-z0-9_=-])", ("atatt", "atctt", "atbb")),
    ("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}", (".atlasv1.",)),
    ("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}", ("dp.",)),
    ("pulumi-token", r"pul-[a-f0-9]{40}", ("pul-",)),
    ("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}", ("pscale_",)),
    ("netlify-token", r"nf[pou]_[A-Za-z0-9]{36,}", ("nfp_", "nfo_", "nfu_")),
    ("supabase-key", r"sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{20,})", ("sbp_", "sb_secret_")),
    ("rubygems-token", r"rubygems_[a-f0-9]{48}", ("rubygems_",)),
    ("buildkite-token", r"bk(?:ua|aj)_[a-f0-9]{40}", ("bkua_", "bkaj_")),
    ("airtable-token", r"pat(?<![A-Za-z0-9]pat)[A-Za-z0-9]{14}\.[a-f0-9]{64}", ("pat",)),
    ("pypi-token", r"pypi-[A-Za-z0-9_-]{85,}", ("pypi-",)),
    ("discord-webhook", r"discord(?:app)?\.com/api/webhooks/\d{10,}/([A-Za-z0-9_-]{40,})", ("/webhooks/",)),
    # A token or a DSN's key in place of the user's name, with no password behind it.
    ("url-userinfo", r"://(?=[^\s/@:]{0,200}\d)([A-Za-z0-9_.~%+-]{16,}):?@[A-Za-z0-9.-]", ("@",)),
    # A password may hold what a URL should have escaped.
    ("url-userinfo", r"://[^\s:/@\"'<>\\]{0,100}:([^\s/@\"'<>\\]{3,200})@[A-Za-z0-9.\[-]", ("://",)),
    (
        "authorization",
        r"(?i:authorization)[\"'\\ ]{0,6}(?:[:,][\"'\\ ]{0,6}|=[\\ ]{0,4}[\"'])"
        r"(?:[A-Za-z-]{2,20}\s+)?(?=[A-Za-z_~+/=:-]{0,200}\d)([A-Za-z0-9._~+/=:-]{12,})",
        ("authorization",),
    ),
    (
        "netrc",
        r"(?i:login|user)\s+\S{1,100}\s+(?i:password|account)\s+(?=[^\s\"]{0,200}\d)([^\s\"]{8,200})",
        ("login", "user"),
    ),
    (
        "curl-user",
        r"(?i:curl)[^\n]{0,400}?\s"
        r"(?:-u|--user|--proxy-user)[ =]?[\"'\\]{0,4}[^\s:\"'\\]{1,80}:([^\s\"'\\]{4,200})",
        ("curl",),
    ),
    (
        "cookie",
        r"(?i:(?<![a-z-])(?:set-)?cookie)[\"']?\s{0,2}[:=]\s{0,2}[\"']?"
        r"(?=[^\n\"']{0,2000}=[A-Za-z%._:+/-]{0,200}\d)"
        r"(?=[^\n\"']{0,2000}=[A-Za-z0-9%._:+/-]{16,})"
        r"([^\s=;,\"']{1,60}=[^\n\"'\\]{8,})",
        ("cookie",),
    ),
    (
        "session-id",
        r"(?i:(?:sessionid|session_id|phpsessid|jsessionid|connect\.sid"
        r"|asp\.net_sessionid|[_-]session|(?<![a-z])sid))"
        r"=(?=[^\s;&\"']{0,200}\d)([A-Za-z0-9%._:+/=-]{16,})",
        ("sessionid=", "session_id=", "sessid=", "_session=", "-session=", "sid="),
    ),
)
"""Kind, expression, needles: as `patterns.Pattern` has them."""
