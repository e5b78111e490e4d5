"""What S3 means by some of its refusals, and what to do about each."""

import re

from desilt.objects import aws

EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "The provided token has expired")
ELSEWHERE = ("PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect", "redirect without LOCATION")
SKEWED = "RequestTimeTooSkewed"
REGION = re.compile(r"<Region>([a-z0-9-]+)</Region>|expecting '([a-z0-9-]+)'")
PROVIDER = re.compile(r"External AWS credential provider: \w+: (.*)")


def explained(uri: str, text: str) -> str | None:
    """``text``, an answer or a code, in one line with a way out; None if it is none of those that are known."""
    if found := PROVIDER.search(text):
        return f"{uri} cannot be asked: {found[1]}"
    if any(sign in text for sign in EXPIRED):
        way_out = "get new ones (`aws sso login`, a new session), and give the same command again"
        return f"the keys for {uri} have expired; {way_out}"
    if SKEWED in text:
        return f"the clock of this machine is not that of {uri}; set it right"
    if any(sign in text for sign in ELSEWHERE):
        told = REGION.search(text)
        right = (told[1] or told[2]) if told else "the region of the bucket"
        return f"the bucket of {uri} is not in {aws.region()}; set AWS_REGION to {right}"
    return None
