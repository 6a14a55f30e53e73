// SPDX-License-Identifier: AGPL-3.0-only
// What concerns whole processes: the environment, exit codes, forks, memory between processes, and
// how much a wait costs. Children are this program again, with the name of their part.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm::host_test {

namespace {

using environment = std::vector<std::pair<const char*, const char*>>;

// A child with its standard input and output connected to this process.
class child {
 public:
  explicit child(const char* part, const environment& variables = {}) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    EXPECT_EQ(pipe(in.data()) + pipe(out.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      for (const int descriptor : {in[0], in[1], out[0], out[1]}) {
        close(descriptor);
      }
      for (const auto& [name, value] : variables) {
        setenv(name, value, 1);  // NOLINT(concurrency-mt-unsafe): one thread after fork
      }
      execl("/proc/self/exe", "unit_host_process", "child", part, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }

  child(const child&) = delete;
  child& operator=(const child&) = delete;
  child(child&&) = delete;
  child& operator=(child&&) = delete;

  ~child() {
    close(to_);
    close(from_);
    if (pid_ > 0) {
      kill();
    }
  }

  template <typename T>
  T receive() {
    T value{};
    EXPECT_EQ(read(from_, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
    return value;
  }

  void proceed() { EXPECT_EQ(write(to_, "x", 1), 1); }

  void kill() {
    ::kill(pid_, SIGKILL);
    static_cast<void>(exit_code());
  }

  // -1 for a death by signal.
  int exit_code() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

void wait_for_parent() {
  char byte = 0;
  static_cast<void>(!read(STDIN_FILENO, &byte, 1));
}

void open_device() {
  abi::context context = nullptr;
  if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
      cuCtxSetCurrent(context) != 0) {
    _exit(100);
  }
}

abi::stream open_stream() {
  abi::stream s = nullptr;
  if (cuStreamCreate(&s, 1) != 0) {
    _exit(101);
  }
  return s;
}

void sleep_for_ever(void* /*unused*/) {
  for (;;) {
    pause();
  }
}

// The parts that children play; each returns the exit code.

int before_init() {
  int count = 0;
  abi::context context = nullptr;
  const bool is_refused = cuDeviceGetCount(&count) == results::not_initialized &&
                          cuCtxGetCurrent(&context) == results::not_initialized &&
                          cuStreamSynchronize(nullptr) == results::not_initialized &&
                          cuMemFree_v2(0) == results::not_initialized;
  return is_refused ? 0 : 1;
}

int init_result() {
  return cuInit(0);
}

int device_count() {
  int count = 0;
  return cuInit(0) == 0 && cuDeviceGetCount(&count) == 0 ? count : 200;
}

int exit_while_busy() {
  open_device();
  abi::stream s = open_stream();
  cuLaunchHostFunc(s, &sleep_for_ever, nullptr);
  std::thread{[] {
    std::this_thread::sleep_for(milliseconds{50});
    std::exit(3);  // NOLINT(concurrency-mt-unsafe): what is tested
  }}.detach();
  cuStreamSynchronize(s);
  return 1;
}

int return_while_busy() {
  open_device();
  cuLaunchHostFunc(open_stream(), &sleep_for_ever, nullptr);
  cuStreamQuery(open_stream());
  return 4;
}

int fork_after_init() {
  open_device();
  abi::stream s = open_stream();
  const pid_t forked = fork();
  if (forked == 0) {
    const bool is_refused =
        cuStreamQuery(s) == results::not_initialized && cuInit(0) == results::not_initialized;
    _exit(is_refused ? 5 : 1);
  }
  int status = 0;
  waitpid(forked, &status, 0);
  return cuStreamQuery(s) == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int own_memory() {
  open_device();
  abi::device_ptr padding = 0;
  abi::device_ptr address = 0;
  abi::ipc_mem_handle handle{};
  if (cuMemAlloc_v2(&padding, 300) != 0 || cuMemAlloc_v2(&address, 1000) != 0 ||
      cuIpcGetMemHandle(&handle, address) != 0) {
    return 1;
  }
  auto* bytes = reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
  std::strcpy(bytes, "from the owner");            // NOLINT(clang-analyzer-security*)
  static_cast<void>(!write(STDOUT_FILENO, &handle, sizeof(handle)));
  wait_for_parent();
  return std::strcmp(bytes, "from the parent") == 0 ? 0 : 2;
}

int work_hard() {
  open_device();
  abi::stream first = open_stream();
  abi::stream second = open_stream();
  abi::event e = nullptr;
  cuEventCreate(&e, abi::flags::event_disable_timing);
  int calls = 0;
  const auto count = [](void* total) { ++*static_cast<int*>(total); };
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    cuLaunchHostFunc(first, count, &calls);
    cuEventRecord(e, first);
    cuStreamWaitEvent(second, e, 0);
    cuLaunchHostFunc(second, count, &calls);
    cuStreamSynchronize(second);
  }
  return calls == 2 * rounds ? 0 : 1;
}

struct part {
  std::string_view name;
  int (*play)();
};

constexpr part parts[] = {
    {"before_init", &before_init},
    {"init_result", &init_result},
    {"device_count", &device_count},
    {"exit_while_busy", &exit_while_busy},
    {"return_while_busy", &return_while_busy},
    {"fork_after_init", &fork_after_init},
    {"own_memory", &own_memory},
    {"work_hard", &work_hard},
};

class processes : public driver_fixture {};

TEST_F(processes, refuse_all_calls_before_init) {
  EXPECT_EQ(child{"before_init"}.exit_code(), 0);
}

TEST_F(processes, take_their_devices_from_the_environment) {
  const struct {
    environment variables;
    const char* part;
    int code;
  } table[] = {
      {{}, "device_count", 8},
      {{{"SPARK_COMM_HOST_DEVICES", "2"}}, "device_count", 2},
      {{{"SPARK_COMM_HOST_DEVICES", "64"}}, "device_count", 64},
      {{{"SPARK_COMM_HOST_DEVICES", "0"}}, "init_result", results::invalid_value},
      {{{"SPARK_COMM_HOST_DEVICES", "many"}}, "init_result", results::invalid_value},
      {{{"CUDA_VISIBLE_DEVICES", "3,1,5"}}, "device_count", 3},
      {{{"CUDA_VISIBLE_DEVICES", ""}}, "init_result", results::no_device},
      {{{"CUDA_VISIBLE_DEVICES", "-1"}}, "init_result", results::no_device},
      {{{"CUDA_VISIBLE_DEVICES", "1,1"}}, "init_result", results::no_device},
      {{{"CUDA_VISIBLE_DEVICES", "0,9"}}, "device_count", 1},
  };

  for (const auto& [variables, name, code] : table) {
    EXPECT_EQ((child{name, variables}.exit_code()), code)
        << name << (variables.empty() ? "" : variables.front().second);
  }
}

TEST_F(processes, end_with_their_own_code_whatever_is_pending) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(child{"exit_while_busy"}.exit_code(), 3);
  EXPECT_EQ(child{"return_while_busy"}.exit_code(), 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{10});
}

TEST_F(processes, cannot_use_the_driver_after_a_fork) {
  EXPECT_EQ(child{"fork_after_init"}.exit_code(), 5);
}

TEST_F(processes, share_memory_by_handles) {
  child owner{"own_memory"};
  const auto handle = owner.receive<abi::ipc_mem_handle>();
  abi::device_ptr mapped = 0;
  abi::device_ptr again = 0;
  ASSERT_EQ(cuIpcOpenMemHandle_v2(&mapped, handle, 1), results::success);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&again, handle, 1), results::success);
  EXPECT_EQ(again, mapped);
  auto* bytes = reinterpret_cast<char*>(mapped);  // NOLINT(performance-no-int-to-ptr)
  EXPECT_STREQ(bytes, "from the owner");
  std::strcpy(bytes, "from the parent");  // NOLINT(clang-analyzer-security*)
  abi::device_ptr base = 0;
  std::size_t length = 0;
  EXPECT_EQ(cuMemGetAddressRange_v2(&base, &length, mapped + 999), results::success);
  EXPECT_EQ(base, mapped);
  EXPECT_EQ(length, 1000U);
  EXPECT_EQ(cuMemFree_v2(mapped), results::invalid_value);
  owner.proceed();
  EXPECT_EQ(owner.exit_code(), 0);
  // The memory lives as long as somebody maps it; a new opener comes too late.
  EXPECT_STREQ(bytes, "from the parent");
  EXPECT_EQ(cuIpcCloseMemHandle(mapped), results::success);
  EXPECT_EQ(cuIpcCloseMemHandle(mapped), results::success);
  EXPECT_EQ(cuIpcCloseMemHandle(mapped), results::invalid_value);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&mapped, handle, 1), 205);  // mapping failed
}

TEST_F(processes, leave_nothing_behind_when_killed) {
  const auto names = [] {
    const std::filesystem::directory_iterator entries{"/dev/shm"};
    return std::count_if(begin(entries), end(entries), [](const auto& entry) {
      return entry.path().filename().string().find("spark_comm_host") != std::string::npos;
    });
  };
  const auto before = names();
  child owner{"own_memory"};
  static_cast<void>(owner.receive<abi::ipc_mem_handle>());
  EXPECT_EQ(names(), before);
  owner.kill();
  EXPECT_EQ(names(), before);
}

TEST_F(processes, more_than_there_are_cores_get_on) {
  std::vector<std::unique_ptr<child>> crowd;
  for (int member = 0; member < 8; ++member) {
    crowd.push_back(std::make_unique<child>("work_hard"));
  }
  for (const auto& member : crowd) {
    EXPECT_EQ(member->exit_code(), 0);
  }
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& span) {
    return static_cast<double>(span.tv_sec) + static_cast<double>(span.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(processes, wait_without_burning_a_core) {
  abi::stream first = make_stream();
  abi::stream second = make_stream();
  abi::event e = make_event();
  const auto rest = [](void*) { std::this_thread::sleep_for(milliseconds{500}); };
  const double before = cpu_seconds();
  ASSERT_EQ(cuLaunchHostFunc(first, rest, nullptr), results::success);
  ASSERT_EQ(cuEventRecord(e, first), results::success);
  ASSERT_EQ(cuStreamWaitEvent(second, e, 0), results::success);
  EXPECT_EQ(cuStreamSynchronize(second), results::success);
  EXPECT_LT(cpu_seconds() - before, 0.05);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(first), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(second), results::success);
}

TEST_F(processes, keep_no_threads_of_destroyed_streams) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks{"/proc/self/task"};
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  const auto nothing = [](void*) {};
  for (int round = 0; round < 50; ++round) {
    abi::stream s = make_stream();
    EXPECT_EQ(cuLaunchHostFunc(s, nothing, nullptr), results::success);
    EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
  }
  EXPECT_TRUE(eventually([&] { return threads() <= before; }));
}

int play(std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(parts), std::end(parts), [name](const part& each) { return each.name == name; });
  return found == std::end(parts) ? 99 : found->play();
}

}  // namespace

}  // namespace spark_comm::host_test

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view{argv[1]} == "child") {
    return spark_comm::host_test::play(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
