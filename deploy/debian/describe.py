#!/usr/bin/env python3
"""What a program's --helpxml says, for people and for shells: describe.py man|completion NAME VERSION PROGRAM

`man` writes a manual page, `completion` what bash needs to complete flags.
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

SUMMARIES = {
    "lockstep-gateway": "takes text over gRPC and OpenAI's HTTP API and streams answers",
    "lockstep-worker": "runs a model as one rank of a worker group",
    "lockstep-tokenizer": "encodes, decodes and renders chats for gateways",
    "lockstep-chat": "chats with a model in the terminal",
}
# The logging library has flags, too; these are of use.
LIBRARY_FLAGS = {"v", "vmodule", "minloglevel"}
FILES = {
    "lockstep-gateway": "/etc/lockstep/gateway.yaml",
    "lockstep-worker": "/etc/lockstep/worker-NAME.yaml",
    "lockstep-tokenizer": "/etc/lockstep/tokenizer.yaml",
}


class Flag:
    def __init__(self, element):
        text = {child.tag: child.text or "" for child in element}
        self.name = text["name"]
        self.meaning = re.sub(r"\s+", " ", text["meaning"]).strip()
        self.default = text["default"]
        self.type = text["type"]
        self.is_own = not re.search(r"/(logging|vlog_is_on|utilities|gflags\w*)\.cc$", "/" + text["file"])


def flags_of(program):
    # gflags ends with status 1 after it has helped.
    told = subprocess.run([program, "--helpxml"], capture_output=True, text=True, check=False).stdout
    document = xml.etree.ElementTree.fromstring(told)
    flags = [Flag(element) for element in document.iter("flag")]
    return document.findtext("usage"), sorted(
        (flag for flag in flags if flag.is_own or flag.name in LIBRARY_FLAGS), key=lambda flag: flag.name
    )


def roff(text):
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped[:1] in (".", "'") else escaped


def manual(name, version, usage, flags):
    yield f'.TH {roff(name.upper())} 8 "" "Lockstep {version}" "Lockstep"'
    yield from (".SH NAME", f"{roff(name)} \\- {roff(SUMMARIES[name])}")
    yield from (".SH SYNOPSIS", f".B {roff(name)}", roff(usage.split(" ", 1)[1] if " " in usage else ""))
    yield ".SH DESCRIPTION"
    yield roff("A flag can also be given as a variable of the environment, LOCKSTEP_ and its name in capitals.")
    if name in FILES:
        yield roff("Or as a line NAME: VALUE of the file that --config names.")
        yield from (".SH FILES", ".TP", f".I {roff(FILES[name])}", roff("what the unit of systemd reads."))
    yield ".SH OPTIONS"
    for flag in flags:
        default = f" Default: {flag.default}." if flag.default else ""
        yield from (".TP", f".BI \\-\\-{roff(flag.name)}= {flag.type}", roff(flag.meaning + default))
    yield from (".SH EXIT STATUS", roff("0 after SIGTERM or SIGINT; 1, and a sentence, after any failure."))


def completion(name, flags):
    function = "_" + name.replace("-", "_")
    words = " ".join(f"--{flag.name}{'' if flag.type == 'bool' else '='}" for flag in flags)
    return f"""{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  if [[ $current == "=" || $previous == "=" ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "${{current#=}}")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "{words}" -- "$current")
  [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
}}
complete -F {function} {name}"""


def main():
    kind, name, version, program = sys.argv[1:]
    usage, flags = flags_of(pathlib.Path(program))
    if kind == "man":
        print("\n".join(manual(name, version, usage, flags)))
    else:
        print(completion(name, flags))


if __name__ == "__main__":
    main()
