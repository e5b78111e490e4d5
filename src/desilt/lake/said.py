"""What people say of a commit or an upload, checked."""

from collections.abc import Mapping

from desilt.domain.names import check_text
from desilt.lake.heads import Signature
from desilt.lake.upload import About

Metadata = Mapping[str, str] | None


def signature(message: str, committer: str, metadata: Metadata) -> Signature:
    return Signature(check_text("a message", message), check_text("a committer", committer), check_metadata(metadata))


def about(content_type: str, metadata: Metadata) -> About:
    return About(check_text("a content type", content_type), check_metadata(metadata))


def check_metadata(metadata: Metadata) -> dict[str, str]:
    return {check_text("metadata", key): check_text("metadata", value) for key, value in (metadata or {}).items()}
