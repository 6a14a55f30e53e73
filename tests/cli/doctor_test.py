# SPDX-License-Identifier: AGPL-3.0-only
"""`doctor`: recorded machines, this machine, two ends, exit codes, JSON."""

import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import machine_recording
from tool import run

KEY = "0123456789abcdef0123456789abcdef"


def findings(result):
    return sorted(f"{one['grade']} {one['check']}" for one in json.loads(result.out)["findings"])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="spark_comm_doctor_")
        self.addCleanup(self.folder.cleanup)

    def changed(self, shape, **changes):
        texts = machine_recording.read(shape)
        texts.update({path.replace("__", "/"): text for path, text in changes.items()})
        path = os.path.join(self.folder.name, "changed.machine")
        machine_recording.write(texts, path)
        return path

    def test_a_healthy_machine(self):
        result = run("doctor", "--root", machine_recording.path_of("spark"))
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("spark-1, NVIDIA_DGX_Spark", result.out)
        self.assertIn("0 problems, 0 warnings, 0 notes", result.out)

    def test_a_warning_is_exit_code_1(self):
        result = run("doctor", "--root", machine_recording.path_of("spark_half"))
        self.assertEqual((result.code, result.err), (1, ""))
        self.assertIn("[roce.half_unused]", result.out)
        self.assertIn("mend: sudo ip address add", result.out)

    def test_a_problem_is_exit_code_4(self):
        result = run("doctor", "--json", "--root", self.changed("spark", dev__nvidiactl="none"))
        self.assertEqual(result.code, 4)
        self.assertEqual(findings(result), ["problem gpu.device_file"])
        document = json.loads(result.out)
        self.assertEqual((document["schema"], document["schema_version"]), ("spark-comm/doctor", 1))
        self.assertEqual(document["exit_code"], 4)
        for one in document["findings"]:
            self.assertEqual(set(one), {"grade", "check", "seen", "means", "remedy"})

    def test_a_folder_tells_the_same_as_a_recording(self):
        for shape in ("spark", "spark_half", "nvlink_8", "laptop"):
            folder = os.path.join(self.folder.name, shape)
            machine_recording.unpack(machine_recording.read(shape), folder)
            recorded = run("doctor", "--json", "--root", machine_recording.path_of(shape))
            unpacked = run("doctor", "--json", "--root", folder)
            self.assertEqual(findings(unpacked), findings(recorded), shape)
            self.assertEqual(unpacked.code, recorded.code)

    def test_what_cannot_be_read(self):
        for arguments, code in (
            (("--root", "/no/such/folder"), 3),
            (("--root", __file__), 2),
            (("--rank", "0"), 2),
            (("--rank", "2", "--peer", "127.0.0.1:1"), 2),
            (("--peer", "127.0.0.1:1", "--root", "/tmp"), 2),
            (("--peer", "::1:29500"), 2),
        ):
            result = run("doctor", *arguments)
            self.assertEqual(result.code, code, result.err)
            self.assertEqual(result.err.count("\n"), 1)


class ThisMachine(unittest.TestCase):
    def test_a_recording_is_as_good_as_being_there(self):
        with tempfile.TemporaryDirectory(prefix="spark_comm_doctor_") as folder:
            path = os.path.join(folder, "here.machine")
            there = run("doctor", "--json", "--record", path, SPARK_COMM_KEY=KEY)
            self.assertEqual(there.err, "")
            again = run("doctor", "--json", "--root", path)
            self.assertEqual(findings(again), findings(there))
            self.assertEqual(again.code, there.code)
            with open(path, encoding="utf-8") as file:
                self.assertNotIn(KEY, file.read())

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/version"), "there is a GPU")
    def test_without_a_gpu_it_says_what_works(self):
        result = run("doctor")
        self.assertIn("no NVIDIA driver is loaded", result.out)
        self.assertIn("every operation, test, benchmark and example works", result.out)
        self.assertIn("0 problems", result.out)
        self.assertIn(result.code, (0, 1))

    def test_misspelt_variables_are_named(self):
        result = run("doctor", "--json", NCCL_SOCKET_IFNAMES="eth0", NCCL_IB_GID_IDX="3")
        self.assertEqual(result.code, 1)
        named = [one for one in json.loads(result.out)["findings"] if one["check"] == "env.misspelt"]
        self.assertEqual(len(named), 2)
        self.assertIn("NCCL_IB_GID_INDEX", named[0]["means"])


class Pair(unittest.TestCase):
    def both(self, first, second):
        """The results of two commands that need each other."""
        results = [None, None]

        def go(index, call):
            results[index] = call()

        threads = [threading.Thread(target=go, args=each) for each in ((0, first), (1, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def test_two_processes_of_one_machine(self):
        at = f"127.0.0.1:{free_port()}"
        ends = self.both(
            *(
                lambda rank=rank: run("doctor", "--json", "--peer", at, "--rank", str(rank))
                for rank in (0, 1)
            )
        )
        for end in ends:
            self.assertEqual(end.err, "")
            pair = [name for name in findings(end) if "pair." in name]
            self.assertEqual(pair, ["note pair.burst", "note pair.one_machine"])
            burst = [one for one in json.loads(end.out)["findings"] if one["check"] == "pair.burst"]
            self.assertIn("lo by", burst[0]["seen"])

    def test_differences_are_named(self):
        at = f"127.0.0.1:{free_port()}"
        ends = self.both(
            lambda: run("doctor", "--json", "--peer", at, "--rank", "0", NCCL_PROTO="Simple"),
            lambda: run("doctor", "--json", "--peer", at, "--rank", "1"),
        )
        for end in ends:
            self.assertIn("warning pair.variable", findings(end))
            self.assertEqual(end.code, 1)

    def test_nobody_comes(self):
        at = f"127.0.0.1:{free_port()}"
        result = run("doctor", "--peer", at, "--rank", "0", "--deadline", "300ms")
        self.assertEqual(result.code, 4)
        self.assertIn("missing", result.err)


def may_make_namespaces():
    return subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(may_make_namespaces(), "no privilege to make network namespaces")
class TwoMachines(unittest.TestCase):
    """Two namespaces: two ports each, of which one pair is cabled in one subnet, the house's network
    and a bridge of containers that has the same address on both."""

    def setUp(self):
        self.spaces = [f"sd{side}{os.getpid()}" for side in "ab"]
        a, b = self.spaces
        for space in self.spaces:
            self.must(f"ip netns add {space}")
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], check=False)
            self.must(f"ip -n {space} link set lo up")
            self.must(f"ip -n {space} link add docker0 type bridge")
            self.must(f"ip -n {space} addr add 172.17.0.1/16 dev docker0")
            self.must(f"ip -n {space} link set docker0 up")
        for wire, here, there in (
            ("port2", "192.0.2.13/30", "192.0.2.17/30"),
            ("port1", "192.0.2.9/30", "192.0.2.10/30"),
            ("eno1", "198.51.100.10/24", "198.51.100.11/24"),
        ):
            self.must(f"ip -n {a} link add {wire} type veth peer name {wire} netns {b}")
            for space, address in ((a, here), (b, there)):
                self.must(f"ip -n {space} addr add {address} dev {wire}")
                self.must(f"ip -n {space} link set {wire} up")

        for space in self.spaces:
            self.wait_for_links(space)

    def must(self, command):
        subprocess.run(command.split(), check=True)

    def wait_for_links(self, space):
        """The kernel reports a link some time after both ends were switched on."""
        end = time.monotonic() + 20
        show = ["ip", "-n", space, "-br", "link", "show", "type", "veth", "up"]
        while subprocess.check_output(show, text=True).count(" UP ") < 3:
            self.assertLess(time.monotonic(), end, f"no links in {space}")
            time.sleep(0.05)

    def doctor(self, space):
        """Both meet over the house's network, as people do."""
        command = ["ip", "netns", "exec", space, os.environ["SPARK_COMM_TOOL"], "doctor", "--json"]
        environment = dict(os.environ, SPARK_COMM_KEY=KEY)
        return subprocess.Popen(
            command + ["--peer", "198.51.100.10:29517"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_the_cabled_pair_is_chosen_and_proved(self):
        ends = [self.doctor(space) for space in self.spaces]
        for end in ends:
            self.addCleanup(end.kill)
        for end, address in zip(ends, ("192.0.2.9", "192.0.2.10")):
            out, err = end.communicate(timeout=60)
            self.assertEqual(err, "")
            by_name = {one["check"]: one for one in json.loads(out)["findings"]}
            self.assertIn(f"port1 {address} here", by_name["pair.link"]["seen"])
            self.assertIn("NCCL_SOCKET_IFNAME==port1", by_name["pair.link"]["remedy"])
            self.assertEqual(by_name["pair.burst"]["grade"], "note", by_name["pair.burst"])
            self.assertIn("port1 by", by_name["pair.burst"]["seen"])
            self.assertNotIn("docker", json.dumps(by_name["pair.link"]))


class Join(unittest.TestCase):
    """What a join makes of the same mistakes."""

    def test_an_interface_that_is_not_there_ends_it_with_the_names_that_are(self):
        result = run("check", "--ranks", "2", "--runtime", "host", NCCL_SOCKET_IFNAME="nosuch0")
        self.assertEqual(result.code, 2, result.err)
        self.assertIn("NCCL_SOCKET_IFNAME is 'nosuch0'", result.err)
        self.assertIn("present are: ", result.err)

    def test_a_misspelt_name_is_a_warning_and_it_goes_on(self):
        result = run(
            "bench", "broadcast", "--ranks", "2", "--runtime", "host", "--max", "8",
            NCCL_SOCKET_IFNAMES="lo", SPARK_COMM_RANKS="1",
        )
        self.assertEqual(result.code, 0, result.err)
        for line in ("NCCL_SOCKET_IFNAMES is set, but", "did you mean SPARK_COMM_RANK?"):
            self.assertIn(line, result.err)


if __name__ == "__main__":
    unittest.main()
