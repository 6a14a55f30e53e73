// SPDX-License-Identifier: AGPL-3.0-only
// An NCCL that only keeps books: live communicators and registrations, group depth. Nothing moves.
#pragma once

#include "support/call_script.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/nccl/library.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace spark_comm::testing {

class scripted_nccl {
 public:
  explicit scripted_nccl(call_script& script) : script_(script) {
    handle_process();
    handle_communicators();
    handle_registration();
    handle_groups();
  }

  /// The whole table; a test takes optional calls away by setting them to null.
  [[nodiscard]] static nccl::api table() {
    nccl::api made;
#define SPARK_COMM_SCRIPT(type, name, arguments) made.name = &SCRIPTED_CALL(nccl::api, name)::call;
#define SPARK_COMM_SCRIPT_OPTIONAL(type, name, arguments, since) \
  SPARK_COMM_SCRIPT(type, name, arguments)
    SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(SPARK_COMM_SCRIPT)
    SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_SCRIPT_OPTIONAL)
#undef SPARK_COMM_SCRIPT
#undef SPARK_COMM_SCRIPT_OPTIONAL
    return made;
  }

  [[nodiscard]] nccl::library library(diagnostics log = {}) const {
    return nccl::library::from_table(table(), std::move(log));
  }

  // What a test may set.
  std::atomic<int> version{22809};
  std::string last_error;

  // What a test may read.
  [[nodiscard]] std::size_t live_communicators() const {
    const std::scoped_lock lock{mutex_};
    return communicators_.size();
  }

  [[nodiscard]] std::size_t live_blocks() const {
    const std::scoped_lock lock{mutex_};
    return blocks_.size();
  }

  [[nodiscard]] int group_depth() const { return group_depth_; }

 private:
  struct place {
    int ranks = 0;
    int rank = 0;
  };

  int make_communicator(nccl::abi::comm* out, place where) {
    const std::scoped_lock lock{mutex_};
    *out = reinterpret_cast<nccl::abi::comm>(next_ += 16);
    communicators_[*out] = where;
    return 0;
  }

  // A null communicator is fine, a dead one is what a test wants to hear of.
  int end_communicator(nccl::abi::comm comm) {
    const std::scoped_lock lock{mutex_};
    return comm == nullptr || communicators_.erase(comm) == 1 ? 0
                                                              : nccl::abi::results::internal_error;
  }

  int tell(nccl::abi::comm comm, int place::* field, int* out) const {
    const std::scoped_lock lock{mutex_};
    const auto found = communicators_.find(comm);
    if (found == communicators_.end()) {
      return nccl::abi::results::invalid_argument;
    }
    *out = found->second.*field;
    return 0;
  }

  void handle_process() {
    SCRIPTED_CALL(nccl::api, ncclGetVersion)::handle(script_, [this](int* out) {
      *out = version;
      return 0;
    });
    SCRIPTED_CALL(nccl::api, ncclGetErrorString)::handle(script_, [](int code) -> const char* {
      return code == nccl::abi::results::system_error ? "unhandled system error" : "scripted text";
    });
    SCRIPTED_CALL(nccl::api, ncclGetLastError)::handle(
        script_, [this](nccl::abi::comm) { return last_error.c_str(); });
    SCRIPTED_CALL(nccl::api, ncclGetUniqueId)::handle(script_, [this](nccl::abi::unique_id* id) {
      id->internal[0] = static_cast<char>(++ids_);
      return 0;
    });
  }

  void handle_communicators() {
    using nccl::abi::comm;
    using nccl::abi::config;
    using nccl::abi::unique_id;
    SCRIPTED_CALL(nccl::api, ncclCommInitRank)::handle(
        script_, [this](comm* out, int ranks, unique_id, int rank) {
          return make_communicator(out, {ranks, rank});
        });
    SCRIPTED_CALL(nccl::api, ncclCommInitRankConfig)::handle(
        script_, [this](comm* out, int ranks, unique_id, int rank, config*) {
          return make_communicator(out, {ranks, rank});
        });
    SCRIPTED_CALL(nccl::api, ncclCommSplit)::handle(
        script_, [this](comm parent, int, int key, comm* child, config*) {
          int ranks = 0;
          const int code = tell(parent, &place::ranks, &ranks);
          return code != 0 ? code : make_communicator(child, {ranks, key});
        });
    SCRIPTED_CALL(nccl::api, ncclCommDestroy)::handle(
        script_, [this](comm c) { return end_communicator(c); });
    SCRIPTED_CALL(nccl::api, ncclCommAbort)::handle(script_,
                                                    [this](comm c) { return end_communicator(c); });
    SCRIPTED_CALL(nccl::api, ncclCommGetAsyncError)::handle(script_, [](comm, int* state) {
      *state = nccl::abi::results::success;
      return 0;
    });
    SCRIPTED_CALL(nccl::api, ncclCommCount)::handle(
        script_, [this](comm c, int* count) { return tell(c, &place::ranks, count); });
    SCRIPTED_CALL(nccl::api, ncclCommUserRank)::handle(
        script_, [this](comm c, int* rank) { return tell(c, &place::rank, rank); });
    SCRIPTED_CALL(nccl::api, ncclCommCuDevice)::handle(script_, [](comm, int* device) {
      *device = 0;
      return 0;
    });
  }

  void handle_registration() {
    using nccl::abi::comm;
    SCRIPTED_CALL(nccl::api, ncclCommRegister)::handle(
        script_, [](comm, void* base, std::size_t, void** handle) {
          *handle = base;
          return 0;
        });
    SCRIPTED_CALL(nccl::api, ncclCommWindowRegister)::handle(
        script_, [](comm, void* base, std::size_t, nccl::abi::window* window, int) {
          *window = static_cast<nccl::abi::window>(base);
          return 0;
        });
    SCRIPTED_CALL(nccl::api, ncclMemAlloc)::handle(script_, [this](void** out, std::size_t bytes) {
      *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
      const std::scoped_lock lock{mutex_};
      blocks_.insert(*out);
      return *out == nullptr ? nccl::abi::results::unhandled_cuda_error : 0;
    });
    SCRIPTED_CALL(nccl::api, ncclMemFree)::handle(script_, [this](void* block) {
      const std::scoped_lock lock{mutex_};
      if (blocks_.erase(block) != 1) {
        return nccl::abi::results::invalid_argument;
      }
      std::free(block);
      return 0;
    });
  }

  void handle_groups() {
    SCRIPTED_CALL(nccl::api, ncclGroupStart)::handle(script_, [this] {
      ++group_depth_;
      return 0;
    });
    SCRIPTED_CALL(nccl::api, ncclGroupEnd)::handle(script_, [this] {
      if (group_depth_ == 0) {
        return nccl::abi::results::invalid_usage;
      }
      --group_depth_;
      return 0;
    });
  }

  call_script& script_;
  mutable std::mutex mutex_;
  std::map<nccl::abi::comm, place> communicators_;
  std::set<void*> blocks_;
  std::uintptr_t next_ = 0x10000;
  std::atomic<int> ids_{0};
  std::atomic<int> group_depth_{0};
};

}  // namespace spark_comm::testing
