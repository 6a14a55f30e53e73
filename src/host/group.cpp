// SPDX-License-Identifier: AGPL-3.0-only
#include "group.hpp"

#include "communicator.hpp"
#include "last_error.hpp"
#include "launch.hpp"
#include "nccl_abi.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::host::nccl {
namespace {

// All that one communicator does in a group.
struct group_member {
  communicator_ptr comm;
  std::vector<issued_operation> operations;
};

struct group_content {
  int error = results::success;
  std::vector<group_member> members;
  std::vector<group_job> jobs;
  std::vector<std::function<void()>> teardowns;

  [[nodiscard]] bool is_empty() const noexcept { return members.empty() && jobs.empty(); }
};

// A group belongs to its thread.
struct thread_group {
  int depth = 0;
  group_content content;
};

thread_group& this_group() noexcept {
  thread_local thread_group group;
  return group;
}

bool is_blocking(const group_content& content) noexcept {
  return content.jobs.empty() ? content.members.front().comm->options().is_blocking
                              : content.jobs.front().is_blocking;
}

int check_mode(const group_content& content, bool is_blocking_call) {
  if (!content.is_empty() && is_blocking(content) != is_blocking_call) {
    return refuse(results::invalid_argument,
                  "Blocking and nonblocking communicators are not allowed in the same group");
  }
  return results::success;
}

// Helper threads have nobody to throw to.
template <typename Work>
int run_guarded(Work&& work) noexcept {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& failure) {
    remember_error(failure.what());
    return results::internal_error;
  }
}

// The jobs of a group wait for each other (a thread may be all ranks of a world), so each has a
// thread; the last one takes the caller's.
int run_jobs(std::vector<group_job>& jobs) {
  if (jobs.empty()) {
    return results::success;
  }
  std::vector<int> codes(jobs.size(), results::success);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i + 1 < jobs.size(); ++i) {
    threads.emplace_back([&, i] { codes[i] = run_guarded(jobs[i].work); });
  }
  codes.back() = run_guarded(jobs.back().work);
  for (std::thread& each : threads) {
    each.join();
  }
  const auto failed = std::ranges::find_if(codes, [](int code) { return code != 0; });
  const int code = failed == codes.end() ? results::success : *failed;
  for (const group_job& job : jobs) {
    job.conclude(code);
  }
  return code;
}

int do_group(group_content& content) {
  if (const int code = run_jobs(content.jobs); code != results::success) {
    return code;
  }
  for (const group_member& member : content.members) {
    if (const int code = launch(member.comm, member.operations); code != results::success) {
      return code;
    }
  }
  return results::success;
}

std::vector<communicator_ptr> participants(const group_content& content) {
  std::vector<communicator_ptr> all;
  for (const group_member& member : content.members) {
    all.push_back(member.comm);
  }
  for (const group_job& job : content.jobs) {
    all.push_back(job.owner);
  }
  return all;
}

// NCCL gives the work to a helper thread, and the communicators stay in progress until it is done.
int do_in_background(group_content content) {
  const std::vector<communicator_ptr> all = participants(content);
  for (const communicator_ptr& comm : all) {
    comm->join_background();
    comm->state.begin();
  }
  const auto finish = [all](int code) {
    for (const communicator_ptr& comm : all) {
      comm->state.finish(code);
    }
    return code;
  };
  std::shared_ptr<background_job> job;
  try {
    job = std::make_shared<background_job>([finish, content = std::move(content)]() mutable {
      finish(run_guarded([&] { return do_group(content); }));
    });
  } catch (const std::system_error& failure) {
    return finish(refuse(results::system_error, "no thread for the launch: {}", failure.what()));
  }
  for (const communicator_ptr& comm : all) {
    comm->set_background(job);
  }
  return results::in_progress;
}

// Nothing of a failed group is launched; non-blocking communicators keep its error.
int drop_group(group_content& content) {
  for (const group_job& job : content.jobs) {
    job.conclude(content.error);
  }
  for (const communicator_ptr& comm : participants(content)) {
    if (!comm->options().is_blocking) {
      comm->state.fail(content.error);
    }
  }
  return content.error;
}

int check_members(const group_content& content) {
  for (const group_member& member : content.members) {
    if (const int code = check_group(*member.comm, member.operations); code != results::success) {
      return code;
    }
  }
  return results::success;
}

}  // namespace

void open_group() noexcept {
  ++this_group().depth;
}

bool is_in_group() noexcept {
  return this_group().depth > 0;
}

void leak_group_depth() noexcept {
  ++this_group().depth;
}

void fail_group(int code) noexcept {
  group_content& content = this_group().content;
  if (content.error == results::success) {
    content.error = code;
  }
}

int close_group() {
  thread_group& group = this_group();
  if (group.depth == 0) {
    return refuse(results::invalid_usage, "ncclGroupEnd: not in a group call.");
  }
  if (--group.depth > 0) {
    return results::success;
  }
  group_content content = std::exchange(group.content, {});
  for (const auto& teardown : content.teardowns) {
    teardown();
  }
  if (content.error == results::success) {
    content.error = check_members(content);
  }
  if (content.error != results::success) {
    return drop_group(content);
  }
  if (content.is_empty()) {
    return results::success;
  }
  return is_blocking(content) ? do_group(content) : do_in_background(std::move(content));
}

void run_or_defer(std::function<void()> teardown) {
  thread_group& group = this_group();
  if (group.depth == 0) {
    teardown();
  } else {
    group.content.teardowns.push_back(std::move(teardown));
  }
}

int simulate_group_end() {
  thread_group& group = this_group();
  const bool is_dropped = group.depth == 1 && group.content.error == results::success &&
                          !group.content.is_empty() && is_blocking(group.content);
  if (is_dropped) {
    group.content.members.clear();
    group.content.jobs.clear();
  }
  return close_group();
}

int add_operation(const communicator_ptr& comm, issued_operation issued) {
  group_content& content = this_group().content;
  if (const int code = check_mode(content, comm->options().is_blocking); code != results::success) {
    return code;
  }
  for (const group_member& member : content.members) {
    if (is_capturing(member.operations.front().target) != is_capturing(issued.target)) {
      return refuse(results::invalid_usage,
                    "Streams given to a communicator within a NCCL group must either be all "
                    "uncaptured or all captured by the same graph.");
    }
  }
  const auto known = std::ranges::find(content.members, comm, &group_member::comm);
  group_member& member = known == content.members.end()
                             ? content.members.emplace_back(group_member{comm, {}})
                             : *known;
  member.operations.push_back(std::move(issued));
  return results::success;
}

int add_job(group_job job) {
  group_content& content = this_group().content;
  if (const int code = check_mode(content, job.is_blocking); code != results::success) {
    return code;
  }
  content.jobs.push_back(std::move(job));
  return results::success;
}

void forget_in_group(const communicator_ptr& comm) noexcept {
  std::erase_if(this_group().content.members,
                [&](const group_member& member) { return member.comm == comm; });
}

}  // namespace spark_comm::host::nccl
