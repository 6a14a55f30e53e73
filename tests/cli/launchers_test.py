# SPDX-License-Identifier: AGPL-3.0-only
"""One program, unchanged, started by every launcher's variables, and by Open MPI itself."""

import os
import shutil
import socket
import subprocess
import unittest

from tool import environment_with

EXAMPLE = os.environ["SPARK_COMM_EXAMPLES"] + "/02_all_reduce"
RANKS = 3
SUM = "6 6 6 6"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def torchrun(rank, port):
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
            "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "localhost", "MASTER_PORT": port}


def torchrun_with_ipv6(rank, port):
    return dict(torchrun(rank, port), MASTER_ADDR="::1")


def slurm(rank, port):
    """As srun sets them; the first node of the list is where rank 0 is."""
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(RANKS), "SLURM_LOCALID": str(rank),
            "SLURM_JOB_NODELIST": "localhost", "SLURM_JOB_NUM_NODES": "1", "MASTER_PORT": port}


def open_mpi(rank, port):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(RANKS),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port}


def pmix(rank, port):
    return {"PMIX_RANK": str(rank), "PMIX_SIZE": str(RANKS),
            "SPARK_COMM_ADDRESS": f"127.0.0.1:{port}"}


def own(rank, port):
    return {"SPARK_COMM_RANK": str(rank), "SPARK_COMM_WORLD_SIZE": str(RANKS),
            "SPARK_COMM_ADDRESS": f"127.0.0.1:{port}"}


class Launchers(unittest.TestCase):
    def test_the_variables_of_every_launcher_start_the_same_program(self):
        for launcher in (torchrun, torchrun_with_ipv6, slurm, open_mpi, pmix, own):
            with self.subTest(launcher=launcher.__name__):
                port = free_port()
                ranks = [
                    subprocess.Popen([EXAMPLE], env=environment_with(**launcher(rank, port)),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
                    for rank in range(RANKS)
                ]
                for rank, process in enumerate(ranks):
                    out, err = process.communicate(timeout=60)
                    self.assertEqual((process.returncode, err), (0, ""))
                    self.assertEqual(out, f"rank {rank}: {SUM}\n")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here (openmpi-bin)")
    def test_mpirun_starts_the_same_program(self):
        variables = environment_with(MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
        done = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS), EXAMPLE],
            env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f"rank {rank}: {SUM}" for rank in range(RANKS)])


if __name__ == "__main__":
    unittest.main()
