"""Whatever NVML answers or not: devices are published without it or left out, never a crash."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pynvml
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nvml_driver.simulated
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.devices.slices import resource_slices
from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.mig.instances import MigError, NvmlPartitions
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated import profile
from nvml_driver.simulated.node import make_node
from tests.nvml_driver.injecting import Injector
from tests.nvml_driver.published import problems

SOURCES = Path(nvml_driver.simulated.__file__).parent / "library"
FUNCTIONS = sorted(
    {
        name
        for source in SOURCES.glob("*.c")
        for name in re.findall(r"(?m)^API [a-z0-9_ *]+?\**(nvml[A-Z]\w+)\(", source.read_text())
        if not name.startswith(("nvmlSimulated", "nvmlShutdown", "nvmlErrorString"))
    }
)
ERRORS = [2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 17, 19, 20, 23, 25, 27, 28, 29, 999]
FEATURES = [
    Features(),
    Features(dynamic_mig=True),
    Features(vfio=True, dynamic_mig=True, consumable_shares=3),
]
COMMON = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


class Said(logging.Handler):
    """Everything that the driver's log says."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def test_the_faults_are_those_of_the_whole_library() -> None:
    assert {"nvmlDeviceGetUUID", "nvmlDeviceGetGpuInstances", "nvmlInit_v2"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 50


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> NodeRoots:
    return make_node(profile.load_profile("mixed"), tmp_path_factory.mktemp("node"))


faults = st.lists(
    st.tuples(
        st.sampled_from([*FUNCTIONS, "*"]),
        st.sampled_from(ERRORS),
        st.sampled_from([None, 0, 1, 2, 3]),
        st.integers(1, 4),
        st.sampled_from([None, 0, 3]),
    ),
    max_size=6,
)


@COMMON
@given(script=faults, features=st.sampled_from(FEATURES))
def test_no_script_of_failures_makes_discovery_crash(
    roots: NodeRoots, script: list[tuple[str, int, int | None, int, int | None]], features: Features
) -> None:
    baseline = discover_devices(NvmlLibrary.load_simulated("mixed"), roots, features=features)
    library = NvmlLibrary.load_simulated("mixed")
    for function, error, gpu, first, more in script:
        last = None if more is None else first + more
        Injector(library).fail(function, error, gpu=gpu, first=first, last=last)
    log = logging.getLogger("nvml_driver")
    said = Said()
    before = log.level
    log.addHandler(said)
    log.setLevel(logging.DEBUG)
    try:
        found = discover_devices(library, roots, features=features)
    except NvmlUnavailableError:
        return
    finally:
        log.removeHandler(said)
        log.setLevel(before)
    assert problems(resource_slices(found, driver_name="d.io", node_name="n")) == []
    for device in baseline:
        same = found.get(device.name)
        lost = set(device.attributes) - set(same.attributes) if same else {device.name}
        if lost:
            assert said.messages, f"{device.name}: {lost} went without a word"


@COMMON
@given(
    name=st.text(min_size=1, max_size=40),
    brand=st.integers(0, 2**31 - 1),
    architecture=st.integers(0, 2**32 - 1),
    memory=st.one_of(st.none(), st.integers(0, 2**63 - 1)),
    version=st.from_regex(r"\A[\x21-\x7e]{1,40}\Z"),
    cuda=st.integers(0, 2**31 - 1),
    features=st.sampled_from(FEATURES),
)
def test_no_value_that_nvml_could_tell_makes_a_slice_invalid(
    roots: NodeRoots,
    name: str,
    brand: int,
    architecture: int,
    memory: int | None,
    version: str,
    cuda: int,
    features: Features,
) -> None:
    base = profile.load_profile("mixed")
    printable = "".join(c for c in name if c.isprintable())[:30] or "x"
    strange = {
        "name": printable,
        "brand": brand,
        "architecture": architecture,
        "memory_bytes": memory,
    }
    shown = base.model_copy(
        update={
            "gpus": tuple(gpu.model_copy(update=strange) for gpu in base.gpus),
            "driver_version": version,
            "cuda_driver_version": cuda,
        }
    )
    found = discover_devices(NvmlLibrary.load_simulated(shown), roots, features=features)
    assert len(found) >= 4
    assert problems(resource_slices(found, driver_name="d.io", node_name="n")) == []


@COMMON
@given(script=faults, number=st.integers(0, 24))
def test_no_script_of_failures_leaks_a_mig_device_or_hides_one(
    roots: NodeRoots, script: list[tuple[str, int, int | None, int, int | None]], number: int
) -> None:
    library = NvmlLibrary.load_simulated("a30x4")
    parts = discover_devices(library, roots, features=Features(dynamic_mig=True)).devices
    place = parts[number % 13].place
    assert place is not None
    partitions = NvmlPartitions(library, roots)
    for function, error, gpu, first, more in script:
        last = None if more is None else first + more
        Injector(library).fail(function, error, gpu=gpu, first=first, last=last)
    try:
        made = partitions.create_instance(place)
    except (MigError, NvmlUnavailableError) as error:
        Injector(library).heal()
        for index in range(4):
            Injector(library).heal(gpu=index)
        left = partitions.read_state().instances
        said = str(error)
        assert not left or "cannot be destroyed" in said or "shut down" in said, (left, said)
    else:
        Injector(library).heal()
        for index in range(4):
            Injector(library).heal(gpu=index)
        [there] = partitions.read_state().instances
        assert (there.gi_id, there.ci_id, there.place) == (made.gi_id, made.ci_id, place)
        partitions.destroy_instance(there)
    assert all(left.ci_id is None for left in partitions.read_state().instances)


def test_a_library_that_lost_every_gpu_leaves_all_out(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("b200x8")
    for index in range(8):
        Injector(library).fail("*", "GPU_IS_LOST", gpu=index)
    found = discover_devices(library, NodeRoots(sysfs=tmp_path))
    assert len(found) == 0
    assert len(found.left_out) == 8
    assert resource_slices(found, driver_name="d.io", node_name="n") == []


def test_a_fault_can_be_in_one_call_only() -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    Injector(library).fail("nvmlDeviceGetCount_v2", "UNKNOWN", first=2, last=3)
    answers = []
    with library.open_session() as nvml:
        for _ in range(4):
            try:
                answers.append(nvml.nvmlDeviceGetCount())
            except pynvml.NVMLError_Unknown:
                answers.append(None)
    assert answers == [4, None, None, 4]


@pytest.mark.parametrize(
    "line",
    [
        "fault 9 nvmlX 3",
        "fault - nvmlX",
        "fault - nvmlX 0",
        "fault - nvmlX 3 5 4",
        "event 0 8",
        "event - 8 79",
        "event 0 8 79 1",
        "recovery 0 x",
        "explode 0",
    ],
)
def test_a_control_line_that_cannot_be_obeyed_is_refused_with_its_number(line: str) -> None:
    machine = Injector(NvmlLibrary.load_simulated("t4x4"))
    with pytest.raises(NvmlUnavailableError, match="simulated NVML: line 2: "):
        machine.control("clear - *", line)
