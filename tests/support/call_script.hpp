// SPDX-License-Identifier: AGPL-3.0-only
// Records native calls and answers them as a test programmed. A table of native calls is plain
// function pointers without room for an object, so the script in use is reached through one
// pointer; it exists inside tests only.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::testing {

/// What the calls of one test answer, and which were made. Threads: any.
class call_script {
 public:
  call_script() { in_use_ = this; }

  call_script(const call_script&) = delete;
  call_script& operator=(const call_script&) = delete;
  call_script(call_script&&) = delete;
  call_script& operator=(call_script&&) = delete;

  ~call_script() { in_use_ = nullptr; }

  [[nodiscard]] static call_script& in_use() { return *in_use_; }

  /// The next calls of `function` do nothing and return these codes, one each.
  void answer(std::string_view function, std::initializer_list<int> codes) {
    const std::scoped_lock lock{mutex_};
    auto& queue = answers_[std::string{function}];
    queue.insert(queue.end(), codes);
  }

  /// What every call of `function` does that has no programmed answer. The handler's type is the
  /// native function's: `script.on("cuInit", [](unsigned int) { return 0; })` through
  /// `std::function`.
  template <typename Result, typename... Arguments>
  void on(std::string_view function, std::function<Result(Arguments...)> handler) {
    const std::scoped_lock lock{mutex_};
    handlers_.insert_or_assign(std::string{function}, std::any{std::move(handler)});
  }

  /// Every call so far, in order.
  [[nodiscard]] std::vector<std::string> calls() const {
    const std::scoped_lock lock{mutex_};
    return calls_;
  }

  [[nodiscard]] std::ptrdiff_t count(std::string_view function) const {
    const std::scoped_lock lock{mutex_};
    return std::ranges::count(calls_, function);
  }

  void forget_calls() {
    const std::scoped_lock lock{mutex_};
    calls_.clear();
  }

  /// For the tables: records the call and finds its answer.
  template <typename Result, typename... Arguments>
  Result run(const char* function, Arguments... arguments) {
    std::function<Result(Arguments...)> handler;
    {
      const std::scoped_lock lock{mutex_};
      calls_.emplace_back(function);
      if constexpr (std::is_same_v<Result, int>) {
        const auto queued = answers_.find(function);
        if (queued != answers_.end() && !queued->second.empty()) {
          const int code = queued->second.front();
          queued->second.pop_front();
          return code;
        }
      }
      const auto found = handlers_.find(function);
      if (found != handlers_.end()) {
        handler = std::any_cast<std::function<Result(Arguments...)>>(found->second);
      }
    }
    return handler ? handler(arguments...) : Result{};
  }

 private:
  inline static call_script* in_use_ = nullptr;

  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::map<std::string, std::deque<int>, std::less<>> answers_;
  std::map<std::string, std::any, std::less<>> handlers_;
};

/// A function's name as a template argument.
template <std::size_t Length>
struct literal {
  char text[Length] = {};

  constexpr literal(const char (&from)[Length]) { std::copy_n(from, Length, text); }
};

/// The function that stands in a table for one member of it.
template <auto Member, literal Name>
struct scripted;

template <typename Table,
          typename Result,
          typename... Arguments,
          Result (*Table::*Member)(Arguments...),
          literal Name>
struct scripted<Member, Name> {
  static Result call(Arguments... arguments) {
    return call_script::in_use().run<Result, Arguments...>(Name.text, arguments...);
  }

  /// Sets the handler without spelling the function's type again.
  template <typename Handler>
  static void handle(call_script& script, Handler handler) {
    script.on(Name.text, std::function<Result(Arguments...)>{std::move(handler)});
  }
};

}  // namespace spark_comm::testing

/// `SCRIPTED_CALL(cuda::api, cuInit)::handle(script, [](unsigned int) { return 0; });`
#define SCRIPTED_CALL(table, name) ::spark_comm::testing::scripted<&table::name, #name>
