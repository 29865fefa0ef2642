"""What a client of a Kubernetes API server needs to create objects and to look at what is said of them."""

import collections
import functools
import http.client
import json
import ssl

TIMEOUT_S = 60

Answer = collections.namedtuple("Answer", "status body warnings")


class Trouble(Exception):
    """What ends a trial early, in a sentence."""


class Api:
    """One server, asked with one token; a connection for each question."""

    def __init__(self, address, port, ca, token):
        self.address = address
        self.port = port
        self.token = token
        self.context = ssl.create_default_context(cafile=ca)

    def ask(self, method, path, body=None, content_type="application/json"):
        connection = self._connect()
        try:
            response = self._request(connection, method, path, body, content_type)
            text = response.read()
            warnings = [each.split('"')[1] for each in response.headers.get_all("Warning", [])]
            is_json = response.headers.get_content_type() == "application/json"
            return Answer(response.status, json.loads(text) if is_json else text.decode(), warnings)
        finally:
            connection.close()

    def must(self, method, path, body=None, content_type="application/json"):
        """The body of an answer that is none but good."""
        answer = self.ask(method, path, body, content_type)
        if answer.status >= 300:
            raise Trouble(f"{method} {path}: {answer.status} {message_of(answer)}")
        return answer.body

    def first_event(self, path):
        """Of a watch: what it begins with, or the server's refusal; nothing if it is silent for some seconds."""
        connection = self._connect(timeout_s=5)
        try:
            response = self._request(connection, "GET", path)
            event = json.loads(response.readline() or "null")
            return event if response.status == 200 else {"type": "ERROR", "object": event}
        except TimeoutError:
            return None
        finally:
            connection.close()

    def create(self, object_, namespace=None):
        """As strict as the server can be."""
        return self.ask("POST", self.path_of(object_, namespace) + "?fieldValidation=Strict", object_)

    def path_of(self, object_, namespace=None):
        """Of all objects of its kind."""
        version = object_["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kinds = self._kinds(root)
        if object_["kind"] not in kinds:
            raise Trouble(f"the server has no {version} {object_['kind']}")
        plural, is_namespaced = kinds[object_["kind"]]
        return f"{root}/namespaces/{namespace}/{plural}" if is_namespaced else f"{root}/{plural}"

    @functools.cache
    def _kinds(self, root):
        resources = self.must("GET", root)["resources"]
        return {each["kind"]: (each["name"], each["namespaced"]) for each in resources if "/" not in each["name"]}

    def _connect(self, timeout_s=TIMEOUT_S):
        return http.client.HTTPSConnection(self.address, self.port, timeout=timeout_s, context=self.context)

    def _request(self, connection, method, path, body=None, content_type="application/json"):
        headers = {"authorization": f"Bearer {self.token}", "accept": "application/json"}
        if body is not None:
            headers["content-type"] = content_type
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()


def message_of(answer):
    return answer.body["message"] if isinstance(answer.body, dict) else answer.body
