#!/usr/bin/env python3
"""The script `lockstep` with stand-ins for Bazel and for what it starts.

Each stand-in writes what happens to it to the file `events`. What the script
does with the real programs is tested by hand: tools/fresh_machine.sh.
"""

import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(os.path.realpath(__file__)).parents[2]
LIMIT_S = 60  # Only a failing test waits for it.

SERVER = """#!/usr/bin/env python3
import os, signal, sys
def tell(what):
    with open("events", "a") as events:
        events.write(f"{os.path.basename(sys.argv[0])} {what}\\n")
def stop(*_):
    tell("stops")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
tell(" ".join(sys.argv[1:]))
print("the last words", flush=True)
BEHAVIOUR
"""
SERVES = """
listen = [flag.partition("=")[2] for flag in sys.argv if flag.startswith("--listen=")]
open(f"serving.{listen[0]}", "w").close()
while True: signal.pause()
"""
SERVES_SOMEWHERE = """
print(os.path.basename(sys.argv[0]) + ": serving m on 127.0.0.1:1234", flush=True)
while True: signal.pause()
"""
DIES = "sys.exit(7)"
ENDS = "sys.exit(0)"

# Opening a pipe blocks until its other end is opened, too.
AWAIT_SERVING = """#!/bin/sh
exec cat "serving.$1"
"""

BAZEL = """#!/bin/sh
[ "$2" != --check_up_to_date ] || exit "${BAZEL_UP_TO_DATE-0}"
if [ "${*#*--config=cuda}" != "$*" ]; then
  echo "bazel $1 cuda, with $CUDA_HOME" >> events
  cat cuda_output
  exit "${BAZEL_CUDA_STATUS-0}"
fi
echo "bazel $1" >> events
cat bazel_output
exit "${BAZEL_STATUS-0}"
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class LockstepTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        for script in ("lockstep", "tools/bench.sh", "tools/doctor.sh", "tools/fuzz.sh"):
            shutil.copy(CHECKOUT / script, self.root / script)
        self.program("tools/setup.sh", "#!/bin/sh\n[ $# = 0 ] || exit 1\n")
        self.program("tools/fetch.sh", '#!/bin/sh\necho "fetch $1" >> events\n')
        self.program("bin/bazel", BAZEL)
        self.program("bazel-bin/tools/await_serving", AWAIT_SERVING)
        self.program("bazel-bin/worker/worker", SERVER.replace("BEHAVIOUR", SERVES))
        self.program("bazel-bin/frontend/gateway", SERVER.replace("BEHAVIOUR", SERVES))
        (self.root / "third_party/cuda").mkdir(parents=True)
        (self.root / "third_party/cuda/requirements.txt").write_text("")
        (self.root / "cuda_output").write_text("//kernels/cuda:architectures_test PASSED in 0.2s\n")
        (self.root / "bazel_output").touch()
        (self.root / "events").touch()
        self.ready_block = []
        self.worker_at = f"127.0.0.1:{free_port()}"
        self.gateway_at = f"127.0.0.1:{free_port()}"
        self.http_at = f"127.0.0.1:{free_port()}"
        for address in (self.worker_at, self.gateway_at):
            os.mkfifo(self.root / f"serving.{address}")

    def program(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def events(self):
        return (self.root / "events").read_text().splitlines()

    def start(self, *arguments, **environment):
        process = subprocess.Popen(
            [self.root / "lockstep", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "HOME": str(self.root / "home"),
                "PATH": f"{self.root}/bin:/usr/local/bin:/usr/bin:/bin",
                **environment,
            },
        )
        self.addCleanup(process.kill)
        return process

    def run_to_end(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err

    def start_up(self, *flags):
        return self.start(
            "up",
            f"--worker_listen={self.worker_at}",
            "--gateway_listen",
            self.gateway_at,
            f"--http_listen={self.http_at}",
            *flags,
        )

    def start_until_ready(self, *flags):
        process = self.start_up(*flags)
        for line in process.stdout:
            if line.startswith("Ctrl-C stops it"):
                return process
            self.ready_block.append(line.strip())
        self.fail(f"never ready: {process.communicate()[1]}")

    def test_up_starts_both_and_an_interrupt_stops_the_gateway_first(self):
        process = self.start_until_ready()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)
        self.assertIn(f"{self.gateway_at} lockstep.v1.Inference/Generate", "\n".join(self.ready_block))
        self.assertIn(f"http://{self.http_at}/v1", "\n".join(self.ready_block))
        starts = [event.partition(" ")[0] for event in self.events()]
        self.assertEqual(starts, ["fetch", "worker", "gateway", "gateway", "worker"])
        self.assertEqual(self.events()[-2:], ["gateway stops", "worker stops"])

    def test_up_passes_flags_on(self):
        model = self.root / "a model"
        model.mkdir()
        process = self.start_until_ready(
            "--model", str(model), "--tensor_parallel_size", "2", "--page_size=32", "--gateway_flag=--v=1"
        )
        process.terminate()
        process.communicate(timeout=LIMIT_S)
        worker, gateway = self.events()[:2]
        for flag in (f"--model={model}", "--tensor_parallel_size=2", "--page_size=32", self.worker_at):
            self.assertIn(flag, worker)
        for flag in ("--v=1", f"--listen={self.gateway_at}", f"--http_listen={self.http_at}", self.worker_at):
            self.assertIn(flag, gateway)

    def test_up_refuses_a_port_in_use(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self.gateway_at = f"127.0.0.1:{listener.getsockname()[1]}"
            process = self.start_up()
            _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn(f"something listens on {self.gateway_at} already", err)
        self.assertIn("--gateway_listen", err)
        self.assertEqual(self.events(), [])

    def test_up_goes_without_http(self):
        self.http_at = ""
        process = self.start_until_ready()
        process.terminate()
        process.communicate(timeout=LIMIT_S)
        self.assertNotIn("http", "\n".join(self.ready_block))
        self.assertIn("--http_listen= ", self.events()[2])

    def test_up_downloads_a_hubs_model(self):
        self.program("bazel-bin/tools/models/models", '#!/bin/sh\necho "models $*" >> events\necho here\n')
        process = self.start_until_ready("--model=owner/name@v1:Q4_0")
        process.terminate()
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(self.events()[0], "models fetch owner/name@v1:Q4_0")
        for server in self.events()[1:3]:
            self.assertIn("--model=here ", server)
        self.assertIn("model     owner/name@v1:Q4_0, tensor_parallel_size 1", self.ready_block)

    def test_up_says_why_a_model_can_not_be_downloaded(self):
        self.program("bazel-bin/tools/models/models", "#!/bin/sh\necho 'models: the hub is gone' >&2\nexit 1\n")
        status, _, err = self.run_to_end("up", "--model=owner/name")
        self.assertEqual(status, 1)
        self.assertIn("the hub is gone", err)
        self.assertEqual(self.events(), [])

    def test_up_refuses_a_model_that_is_not_there(self):
        status, _, err = self.run_to_end("up", "--model=nowhere")
        self.assertEqual(status, 1)
        self.assertIn("--model is nowhere", err)

    def test_up_shows_why_a_worker_does_not_start(self):
        self.program("bazel-bin/worker/worker", SERVER.replace("BEHAVIOUR", DIES))
        process = self.start_up()
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the last words", err)
        self.assertIn("the worker ended with status 7", err)

    def test_up_stops_the_worker_when_the_gateway_dies(self):
        self.program("bazel-bin/frontend/gateway", SERVER.replace("BEHAVIOUR", DIES))
        process = self.start_up()
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the gateway ended with status 7", err)
        self.assertEqual(self.events()[-1], "worker stops")

    def test_check_goldens_passes_flags_on(self):
        self.program(
            "bazel-bin/tests/goldens/check_goldens", '#!/bin/sh\necho "check_goldens $*" >> events\n'
        )
        folder = self.root / "goldens"
        folder.mkdir()
        status, _, _ = self.run_to_end("check_goldens", str(folder), "--arithmetic=fast")
        self.assertEqual(status, 0)
        self.assertEqual(self.events(), [f"check_goldens --dir={folder} --arithmetic=fast"])

    def test_check_goldens_wants_a_folder(self):
        status, _, err = self.run_to_end("check_goldens", "--arithmetic=fast")
        self.assertEqual(status, 1)
        self.assertIn("check_goldens wants a folder", err)

    def test_test_counts_what_passed(self):
        (self.root / "bazel_output").write_text(
            "//kernels:ops_test            PASSED in 0.3s\n"
            "//common:digest_test (cached) PASSED in 0.1s\n"
        )
        status, out, _ = self.run_to_end("test")
        self.assertEqual(status, 0)
        self.assertEqual(out.splitlines()[-1], "3 passed, 0 failed")
        *fetched, tests, fetched_cuda, cuda = self.events()
        names = ["model", "tokenizers", "clients", "kubernetes", "prometheus", "schemas"]
        self.assertEqual(fetched, [f"fetch {name}" for name in names])
        self.assertEqual([tests, fetched_cuda], ["bazel test", "fetch cuda"])
        # Of the hash of no pins at all.
        self.assertTrue(cuda.endswith(f"{self.root}/home/.cache/lockstep/cuda/e3b0c44298fc1c14/toolkit"), cuda)
        self.run_to_end("test", CUDA_HOME="/usr/local/cuda")
        self.assertEqual(self.events()[-2:], ["bazel test", "bazel test cuda, with /usr/local/cuda"])
        self.run_to_end("test", "//kernels:ops_test")
        self.assertEqual(self.events()[-1], "bazel test")

    def test_test_goes_on_without_schemas_but_fails_without_a_cuda_toolkit(self):
        self.program("tools/fetch.sh", '#!/bin/sh\ncase $1 in cuda | schemas) echo no wheel >&2; exit 1 ;; esac\n')
        (self.root / "bazel_output").write_text("//kernels:ops_test PASSED in 0.3s\n")
        status, out, err = self.run_to_end("test")
        self.assertEqual((status, "no wheel" in err), (1, True))
        self.assertIn("//deploy:schemas_test skips", out)
        *_, why, last = out.splitlines()
        self.assertIn("pip could not get what third_party/cuda/requirements.txt names", why)
        self.assertEqual(last, "1 passed, 1 failed")

    def test_test_counts_what_failed(self):
        (self.root / "bazel_output").write_text(
            "//kernels:ops_test     PASSED in 0.3s\n"
            "//common:digest_test   FAILED in 0.1s\n"
            "//common:status_test   TIMEOUT in 60.1s\n"
            "//worker:leader_test   FAILED TO BUILD\n"
            "//worker:group_test    NO STATUS\n"
        )
        status, out, _ = self.run_to_end("test", BAZEL_STATUS="3")
        self.assertEqual(status, 1)
        self.assertEqual(out.splitlines()[-1], "2 passed, 4 failed")

    def test_test_fails_when_nothing_could_run(self):
        for environment in ({"BAZEL_STATUS": "1"}, {"BAZEL_CUDA_STATUS": "1"}):
            (self.root / "cuda_output").write_text("")
            status, out, _ = self.run_to_end("test", **environment)
            self.assertEqual(status, 1)
            self.assertEqual(out.splitlines()[-1], "0 passed, 1 failed")

    def test_shows_why_an_installation_failed(self):
        self.program("tools/setup.sh", "#!/bin/sh\n[ $# = 0 ] || exit 1\necho no mirror >&2\nexit 100\n")
        status, _, err = self.run_to_end("build")
        self.assertEqual(status, 1)
        self.assertIn("no mirror", err)

    def test_is_silent_when_all_is_built(self):
        status, out, err = self.run_to_end("build")
        self.assertEqual((status, out, err, self.events()), (0, "", "", []))
        self.run_to_end("build", BAZEL_UP_TO_DATE="1")
        self.assertEqual(self.events(), ["bazel build"])

    def test_bench_measures_the_default_model_unless_told_another(self):
        self.program("bazel-bin/bench/engine_bench", SERVER.replace("BEHAVIOUR", ENDS))
        self.assertEqual(self.run_to_end("bench", "engine", "--threads", "2")[0], 0)
        self.assertEqual(self.run_to_end("bench", "engine", "--model", "m.gguf", "--json")[0], 0)
        fetched, default, other = self.events()
        self.assertEqual(fetched, "fetch model")
        self.assertRegex(default, "^engine_bench --model=.*/SmolLM2-135M-Instruct.Q4_1.gguf --threads 2$")
        self.assertEqual(other, "engine_bench --model m.gguf --json")

    def test_bench_serves_while_clients_ask(self):
        for server in ("worker/worker", "frontend/gateway"):
            self.program(f"bazel-bin/{server}", SERVER.replace("BEHAVIOUR", SERVES_SOMEWHERE))
        self.program("bazel-bin/bench/serving/serving_bench", SERVER.replace("BEHAVIOUR", ENDS))
        status, _, _ = self.run_to_end("bench", "serving", "--model=m", "--clients", "4", "--threads=2")
        self.assertEqual(status, 0)
        self.assertEqual(
            self.events(),
            [
                "worker --model=m --threads=2 --listen=127.0.0.1:0 --health_listen= --metrics_port=0",
                "gateway --model=m --workers=127.0.0.1:1234 --http_listen= --listen=127.0.0.1:0 --health_listen= --metrics_port=0",
                "serving_bench --target=127.0.0.1:1234 --model=m --threads=2 --clients=4",
                "gateway stops",
                "worker stops",
            ],
        )

    def test_bench_shows_why_a_server_does_not_start(self):
        self.program("bazel-bin/worker/worker", SERVER.replace("BEHAVIOUR", DIES))
        status, _, err = self.run_to_end("bench", "serving", "--model=m")
        self.assertEqual(status, 1)
        self.assertIn("the last words", err)
        self.assertIn("the worker does not start", err)

    def test_bench_loads_a_gateway_that_is_there(self):
        self.program("bazel-bin/bench/serving/serving_bench", SERVER.replace("BEHAVIOUR", ENDS))
        status, _, _ = self.run_to_end("bench", "serving", "--target=host:1", "--json")
        self.assertEqual(status, 0)
        self.assertEqual(self.events(), ["serving_bench --target=host:1 --json"])

    def add_fuzz_target(self):
        self.program("common/BUILD.bazel", 'lockstep_cc_fuzz_test(\n    name = "things_fuzz_test",\n')
        self.program("bazel-bin/common/things_fuzz_test", SERVER.replace("BEHAVIOUR", ENDS))
        self.program("tools/setup.sh", "#!/bin/sh\n")
        (self.root / "bazel_output").write_text("//common:corpus/one.thing\n//common:corpus/two.thing\n")

    def test_fuzz_alone_lists_the_names(self):
        self.add_fuzz_target()
        status, out, _ = self.run_to_end("fuzz")
        self.assertEqual(status, 0)
        self.assertEqual(out.splitlines()[1:], ["  things"])
        self.assertEqual(self.events(), [])

    def test_fuzz_adds_to_a_corpus_of_its_own(self):
        self.add_fuzz_target()
        status, _, err = self.run_to_end("fuzz", "things", "--minutes", "2", "-jobs=2")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(
            self.events()[-1],
            "things_fuzz_test -max_total_time=120 -print_final_stats=1 -artifact_prefix=.lockstep/fuzz/things/"
            " -jobs=2 .lockstep/fuzz/things/corpus common/corpus",
        )

    def test_fuzz_says_what_it_lacks(self):
        self.add_fuzz_target()
        for wrong, sentence in (
            (("nothing",), "there is no fuzz target nothing"),
            (("things", "--minutes=0"), "--minutes is 0: it should be a whole number from 1 on"),
        ):
            self.assertIn(sentence, self.run_to_end("fuzz", *wrong)[2])
        self.program("tools/setup.sh", "#!/bin/sh\necho clang-16\n")
        status, _, err = self.run_to_end("fuzz", "things")
        self.assertEqual(status, 1)
        self.assertIn("missing are clang-16. tools/setup.sh dev installs them", err)
        self.assertEqual(self.events(), [])

    def test_doctor_names_what_cpu_isa_may_be(self):
        self.program("tools/setup.sh", "#!/bin/sh\n")
        self.program("bin/rustc", "#!/bin/sh\n")
        avx512 = "avx512f avx512bw avx512vl avx512dq"
        for features, isas in (
            ("sse2 avx", "reference, which is slow: it has no AVX2"),
            ("avx2", "reference, which is slow: it has no AVX2"),
            ("avx2 fma f16c", "reference, avx2"),
            (f"avx2 fma f16c {avx512} avx512_vnni2", "reference, avx2"),
            (f"avx2 fma f16c {avx512} avx512_vnni", "reference, avx2, avx512_vnni"),
        ):
            with self.subTest(features=features):
                cpu_info = self.root / "cpuinfo"
                cpu_info.write_text(f"flags : fpu {features} aes\n" * 2)
                _, out, _ = self.run_to_end("doctor", LOCKSTEP_CPU_INFO=str(cpu_info))
                self.assertIn(f"processor: {isas}\n", out)

    def test_knows_what_it_does_not_know(self):
        status, _, err = self.run_to_end("fly")
        self.assertEqual(status, 1)
        self.assertIn("there is no command fly", err)


if __name__ == "__main__":
    unittest.main()
