"""Bulk deletes of plain keys, written and read by ourselves in the middle of boto3's own call.

Boto3 looks at each key, writes it and reads what became of it by general rules, which takes most of the CPU of a
removal. Where keys are given as texts, they are written here, byte for byte as boto3 would; and of an answer that
names nothing but keys as removed those are read here. All else is left to boto3: errors, other answers, signing,
checksums and retries.
"""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

KEYS = "desilt_keys"  # in the context of a request
SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
OPERATION = "s3.DeleteObjects"


def quick(client: Any) -> None:
    """Have ``client.delete_objects(Bucket=…, Delete={"Objects": keys})`` take texts. Without this, it refuses them."""
    events = client.meta.events
    events.register(f"before-parameter-build.{OPERATION}", take_keys)
    events.register(f"before-call.{OPERATION}", lambda params, context, **_: write_keys(params, context))
    events.register(f"before-parse.{OPERATION}", read_removed)


def take_keys(params: dict[str, Any], context: dict[str, Any], **_: object) -> None:
    """Keys in place of objects go past boto3; rows that say more are its own."""
    keys = params["Delete"]["Objects"]
    if keys and all(isinstance(key, str) for key in keys):
        context[KEYS] = tuple(keys)
        params["Delete"] = {**params["Delete"], "Objects": []}


def write_keys(request: dict[str, Any], context: dict[str, Any]) -> None:
    if KEYS in context:
        request["body"] = body(context[KEYS])


def body(keys: Sequence[str]) -> bytes:
    """What is asked for."""
    rows = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
    return f'<Delete xmlns="{SPACE}">{rows}</Delete>'.encode()


def read_removed(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """What is removed, if nothing but keys is said of that; the rest of the answer is left for boto3 to read."""
    if response_dict["status_code"] >= 300:  # boto3 makes an error of it
        return
    try:
        answer = ElementTree.XML(response_dict["body"], ElementTree.XMLParser(encoding="utf-8"))
    except ElementTree.ParseError:
        return
    removed = [row for row in answer if _name(row) == "Deleted"]
    if not removed or any(len(row) != 1 or _name(row[0]) != "Key" for row in removed):
        return
    rest = ElementTree.Element(answer.tag, answer.attrib)
    rest.extend(row for row in answer if _name(row) != "Deleted")
    response_dict["body"] = ElementTree.tostring(rest)
    customized_response_dict["Deleted"] = [{"Key": row[0].text or ""} for row in removed]


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
