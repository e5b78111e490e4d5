"""Where a server is and which keys it gets, as lakectl finds them; secrets that stay secret."""

import pickle
import subprocess
import sys

import pytest

from desilt.errors import BadRequest, InvalidUri
from desilt.lakefs.server import Server
from desilt.lakefs.settings import Settings, find, parse

SECRET = "never/shown+anywhere"
LAKECTL = {
    "LAKECTL_SERVER_ENDPOINT_URL": "https://lakefs.example.com",
    "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": "from-lakectl",
    "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": SECRET,
}
CLIENTS = {
    "LAKEFS_ENDPOINT": "http://client.example.com:8000",
    "LAKEFS_ACCESS_KEY_ID": "from-client",
    "LAKEFS_SECRET_ACCESS_KEY": SECRET,
}
FILE = f"""
credentials:
  access_key_id: from-file
  secret_access_key: {SECRET}
server:
  endpoint_url: https://file.example.com/api/v1
metastore: {{}}
"""


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path)}


@pytest.fixture
def with_file(home, tmp_path):
    (tmp_path / ".lakectl.yaml").write_text(FILE)
    return home


def test_lakectls_file_is_enough(with_file):
    assert find("lakefs://repo", environment=with_file) == Settings(
        "https://file.example.com", "repo", "from-file", SECRET
    )


def test_lakectls_variables_come_before_its_file_and_before_those_of_clients(with_file):
    found = find("lakefs://repo", environment=with_file | CLIENTS | LAKECTL)
    assert (found.endpoint, found.key_id) == ("https://lakefs.example.com", "from-lakectl")


def test_one_variable_may_replace_one_line_of_the_file(with_file):
    found = find("lakefs://repo", environment=with_file | {"LAKECTL_SERVER_ENDPOINT_URL": "http://other:8000/"})
    assert (found.endpoint, found.key_id) == ("http://other:8000", "from-file")


def test_variables_of_clients_are_enough(home):
    found = find("lakefs://repo", environment=home | CLIENTS)
    assert (found.endpoint, found.key_id) == ("http://client.example.com:8000", "from-client")


def test_another_file_may_be_named(home, tmp_path):
    (tmp_path / "mine.yaml").write_text(FILE)
    named = home | {"LAKECTL_CONFIG_FILE": str(tmp_path / "mine.yaml")}
    assert find("lakefs://repo", environment=named).key_id == "from-file"
    with pytest.raises(BadRequest, match="is not there; mend the variable"):
        find("lakefs://repo", environment=home | {"LAKECTL_CONFIG_FILE": str(tmp_path / "none.yaml")})


def test_the_host_may_be_in_the_uri(home):
    found = find("lakefs+https://said.example.com:8443/repo", environment=home | LAKECTL)
    assert found.endpoint == "https://said.example.com:8443"
    assert find("lakefs+http://said:8000/repo", environment=home | LAKECTL).endpoint == "http://said:8000"


def test_keys_of_lakectls_file_are_not_sent_to_another_host(with_file):
    with pytest.raises(BadRequest, match="they are not sent there"):
        find("lakefs+https://elsewhere.example.com/repo", environment=with_file)
    assert find("lakefs+https://file.example.com/repo", environment=with_file).key_id == "from-file"
    assert find("lakefs+https://elsewhere.example.com/repo", environment=with_file | LAKECTL).key_id == "from-lakectl"


@pytest.mark.parametrize("lacks", sorted(LAKECTL))
def test_what_lacks_is_told_by_its_name(home, lacks):
    rest = {name: value for name, value in LAKECTL.items() if name != lacks}
    with pytest.raises(BadRequest, match=lacks) as caught:
        find("lakefs://repo", environment=home | rest)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_keys_at_all_are_told_with_the_way_out(home):
    with pytest.raises(BadRequest, match="run `lakectl config`"):
        find("lakefs://repo", environment=home)


@pytest.mark.parametrize("text", [f"credentials: [{SECRET}", f"{SECRET}: : :\n\t", f"- {SECRET}", "\udcff"])
def test_a_file_that_cannot_be_read_is_not_quoted(home, tmp_path, text):
    (tmp_path / ".lakectl.yaml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadRequest, match="see `lakectl config`") as caught:
        find("lakefs://repo", environment=home)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["lakefs.example.com", "ftp://x", f"https://u:{SECRET}@x", "https://", "https://x:port"]
)
def test_an_endpoint_that_is_no_url_is_refused_unquoted(home, url):
    with pytest.raises(BadRequest, match="LAKECTL_SERVER_ENDPOINT_URL is no URL") as caught:
        find("lakefs://repo", environment=home | LAKECTL | {"LAKECTL_SERVER_ENDPOINT_URL": url})
    assert SECRET not in str(caught.value)


def test_uris_that_are_repositories():
    assert parse("lakefs://repo") == ("", "", "repo")
    assert parse("lakefs://repo/") == ("", "", "repo")
    assert parse("lakefs+https://h:1/repo") == ("https", "h:1", "repo")
    assert parse("lakefs+http://h/repo-2") == ("http", "h", "repo-2")


@pytest.mark.parametrize(
    "uri",
    [
        "lakefs://",
        "lakefs:///repo",
        "lakefs:/repo",
        "lakefs://repo/main",
        "lakefs://repo/main/path",
        "lakefs://Repo",
        "lakefs://re",
        "lakefs+https://host",
        "lakefs+https:///repo",
        "lakefs+https://host/",
        "lakefs+ftp://host/repo",
        "lakefs+https://host/repo/main",
        f"lakefs+https://key:{SECRET}@host/repo",
        "lakefs://repo#x",
    ],
)
def test_uris_that_are_none(uri):
    with pytest.raises(InvalidUri, match="write lakefs://REPOSITORY") as caught:
        parse(uri)
    assert SECRET not in str(caught.value)


def test_a_secret_is_in_no_text_and_in_no_pickle(home, monkeypatch):
    settings = find("lakefs://repo", environment=home | LAKECTL)
    assert SECRET not in repr(settings)
    sent = pickle.dumps(settings)
    assert SECRET.encode() not in sent
    monkeypatch.setenv("HOME", home["HOME"])
    for name, value in LAKECTL.items():
        monkeypatch.setenv(name, value)
    assert pickle.loads(sent) == settings
    monkeypatch.setenv("LAKECTL_CREDENTIALS_ACCESS_KEY_ID", "another")
    with pytest.raises(BadRequest, match="is not known here, and is not sent"):
        pickle.loads(sent)


def test_without_the_extra_a_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lakefs_sdk", None)
    with pytest.raises(BadRequest, match=r"pip install 'desilt\[lakefs\]'$"):
        Server(Settings("http://x", "repo", "key", SECRET))


def test_the_client_is_loaded_by_whoever_asks_first():
    code = "import sys, desilt.lakefs.server, desilt.lakefs.dump; sys.exit('lakefs_sdk' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
