"""`nvidia-smi -q -x`: everything about each GPU as XML, parsed without entities, DTDs or anything fetched."""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._gpu_samples import GpuSamples, seconds
from stallwise.readers._gpu_state import take

FORMAT = "nvidia-smi -q -x"
CAPTURE = "nvidia-smi -q -x > q.xml"
EXCLUSIVE = True
MAX_BYTES = 64 << 20  # a thousand GPUs are a few tens of megabytes


def recognises(name: str, head: bytes) -> bool:
    """The root element nvidia-smi writes."""
    return b"<nvidia_smi_log" in head[:4096]


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU."""
    with artifact.open() as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UnreadableInput(f"{artifact.name} is too large for an nvidia-smi report", hint="split it by report")
    walker = _Walker(artifact.name)
    problem = walker.parse(data)
    yield from walker.samples.items()
    if problem:
        if not walker.samples.rows:
            raise UnreadableInput(f"{artifact.name} is damaged XML: {problem}", hint="run nvidia-smi -q -x again")
        yield Note(f"cut off or damaged: {problem}", Source(artifact.name))


class _Walker:
    """Follows the path of open elements and stores the values of each GPU."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.samples = GpuSamples(file)
        self.path: list[str] = []
        self.text: list[str] = []
        self.values: dict[str, float] | None = None
        self.time_s = float("nan")
        self.name = self.bus_id = ""
        self.index = -1
        self.parser = expat.ParserCreate()

    def parse(self, data: bytes) -> str:
        parser = self.parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text.append
        parser.EntityDeclHandler = self._refuse
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            return str(error)
        return ""

    def _refuse(self, *_: object) -> None:
        raise UnreadableInput(
            f"{self.file} declares XML entities", hint="nvidia-smi writes none; do not trust this file"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.text.clear()
        self.path.append(tag)
        if tag == "gpu" and len(self.path) == 2:
            self.index += 1
            self.values, self.name = {"time_s": self.time_s}, ""
            self.bus_id = attributes.get("id", "")

    def _end(self, tag: str) -> None:
        text = "".join(self.text).strip()
        if tag == "timestamp" and len(self.path) == 2:
            self.time_s = seconds(text)
        elif self.values is not None:
            self._value(tag, text)
        self.path.pop()
        self.text.clear()

    def _value(self, tag: str, text: str) -> None:
        assert self.values is not None
        inside = self.path[2:]
        if tag == "gpu" and len(self.path) == 2:
            self.samples.add(self.index, self.values, self.parser.CurrentLineNumber, name=self.name, bus_id=self.bus_id)
            self.values = None
        elif inside == ["product_name"]:
            self.name = text
        elif inside == ["minor_number"] and text.isdigit():
            self.index = int(text)
        elif text:
            take("/".join(inside), text, self.values)
