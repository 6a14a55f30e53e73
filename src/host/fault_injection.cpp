// SPDX-License-Identifier: AGPL-3.0-only
#include "fault_injection.hpp"

#include "exports.hpp"
#include "freeze.hpp"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::host {

constinit std::atomic<fault_state> process_fault_state{fault_state::unread};

namespace {

// A rule, and how many of its events each rank has had.
struct counted_rule {
  fault_rule rule;
  std::map<int, std::uint64_t> events;
};

// Never destroyed: threads may still call while the process exits.
struct fault_table {
  std::mutex mutex;
  std::vector<counted_rule> rules;
  std::map<int, int> corruptions;  ///< Due to the next results of a rank.
  int process_rank = any_rank;     ///< From the launcher, or of the first communicator.
  int applied = 0;                 ///< How often a rule was due.
};

fault_table& faults() noexcept {
  static auto* table = new fault_table;  // NOLINT(cppcoreguidelines-owning-memory): see above
  return *table;
}

const char* variable(const char* name) noexcept {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, at the first call
}

int rank_of_process() noexcept {
  const std::string_view text =
      variable("SPARK_COMM_RANK") == nullptr ? "" : variable("SPARK_COMM_RANK");
  int rank = any_rank;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return failure == std::errc{} && end == text.data() + text.size() ? rank : any_rank;
}

void refuse_script(std::string_view source, std::string_view why) {
  static_cast<void>(std::fputs(
      fmt::format(
          "spark_comm host runtime: {}: {}; every call fails until it is mended\n", source, why)
          .c_str(),
      stderr));
  process_fault_state = fault_state::refused;
}

// Under the table's lock.
void load(std::string_view text, std::string_view source) {
  fault_table& table = faults();
  table.rules.clear();
  table.corruptions.clear();
  table.applied = 0;
  table.process_rank = rank_of_process();
  parsed_script script = parse_fault_script(text);
  if (script.problem) {
    refuse_script(source, describe(*script.problem));
    return;
  }
  for (fault_rule& rule : script.rules) {
    table.rules.push_back({std::move(rule), {}});
  }
  process_fault_state = table.rules.empty() ? fault_state::none : fault_state::loaded;
}

// Under the table's lock.
void load_from_environment() {
  const char* text = variable("SPARK_COMM_HOST_FAULTS");
  const char* path = variable("SPARK_COMM_HOST_FAULTS_FILE");
  if (text != nullptr && path != nullptr) {
    refuse_script("SPARK_COMM_HOST_FAULTS and SPARK_COMM_HOST_FAULTS_FILE", "both are set");
  } else if (path != nullptr) {
    std::ifstream file{path};
    const std::string content{std::istreambuf_iterator<char>{file}, {}};
    if (!file) {
      refuse_script("SPARK_COMM_HOST_FAULTS_FILE", fmt::format("cannot read '{}'", path));
    } else {
      load(content, path);
    }
  } else {
    load(text == nullptr ? "" : text, "SPARK_COMM_HOST_FAULTS");
  }
}

bool is_due(counted_rule& counted, int rank) {
  const std::uint64_t now = ++counted.events[rank];
  switch (counted.rule.occasion) {
    case fault_occasion::every: return true;
    case fault_occasion::nth:   return now == counted.rule.count;
    case fault_occasion::from:  return now >= counted.rule.count;
  }
  return false;
}

bool is_about(const fault_rule& rule, int rank) noexcept {
  return rule.rank == any_rank || rule.rank == rank;
}

// Actions on the process itself; false for all others.
bool act_on_process(const fault_rule& rule) {
  if (rule.action == fault_action::kill) {
    static_cast<void>(std::raise(SIGKILL));
  } else if (rule.action == fault_action::stop) {
    static_cast<void>(std::raise(SIGSTOP));
  } else if (rule.action == fault_action::freeze) {
    if (!freeze_process(rule.time)) {
      static_cast<void>(std::fputs("spark_comm host runtime: cannot freeze the process\n", stderr));
    }
  } else {
    return false;
  }
  return true;
}

void hang(const faultable_call& call) {
  while (call.is_aborted == nullptr || !call.is_aborted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

void act_on_call(const fault_rule& rule, const faultable_call& call, call_fault& fault) {
  if (act_on_process(rule)) {
    return;
  }
  if (rule.action == fault_action::delay) {
    std::this_thread::sleep_for(rule.time);
  } else if (rule.action == fault_action::hang) {
    hang(call);
    fault.code = call.aborted_code;
  } else if (rule.action == fault_action::give_back) {
    fault.code = rule.code;
  } else if (rule.action == fault_action::in_progress) {
    fault.polls = rule.polls;
    fault.last_code = rule.code;
  }
}

// Takes the rules that are due; what they do is done without the lock.
std::vector<fault_rule> due_at_call(const faultable_call& call) {
  fault_table& table = faults();
  const std::scoped_lock lock{table.mutex};
  if (table.process_rank == any_rank) {
    table.process_rank = call.rank;
  }
  const int rank = call.rank == any_rank ? table.process_rank : call.rank;
  std::vector<fault_rule> due;
  for (counted_rule& counted : table.rules) {
    const fault_rule& rule = counted.rule;
    if (rule.event == fault_event::call && is_about(rule, rank) && matches(rule.call, call.name) &&
        is_due(counted, rank)) {
      due.push_back(rule);
    }
  }
  table.applied += static_cast<int>(due.size());
  return due;
}

// Looks for a script at the first call of the process.
fault_state known_state() {
  if (process_fault_state == fault_state::unread) {
    const std::scoped_lock lock{faults().mutex};
    if (process_fault_state == fault_state::unread) {
      load_from_environment();
    }
  }
  return process_fault_state;
}

}  // namespace

call_fault begin_call(const faultable_call& call) {
  call_fault fault;
  const fault_state state = known_state();
  if (state == fault_state::refused) {
    fault.code = call.refused_code;
  } else if (state == fault_state::loaded) {
    for (const fault_rule& rule : due_at_call(call)) {
      act_on_call(rule, call, fault);
    }
  }
  return fault;
}

operation_fault begin_operation(int rank, bool has_result) {
  operation_fault fault;
  std::vector<fault_rule> due;
  fault_table& table = faults();
  {
    const std::scoped_lock lock{table.mutex};
    int& corruptions = table.corruptions[rank];
    if (has_result && corruptions > 0) {
      --corruptions;
      fault.is_corrupt = true;
    }
    for (counted_rule& counted : table.rules) {
      const fault_rule& rule = counted.rule;
      if (rule.event != fault_event::operations || !is_about(rule, rank) ||
          !is_due(counted, rank)) {
        continue;
      }
      ++table.applied;
      if (rule.action == fault_action::corrupt) {
        ++corruptions;
      } else if (rule.action == fault_action::async_error) {
        fault.async_error = rule.code;
      } else {
        due.push_back(rule);
      }
    }
  }
  for (const fault_rule& rule : due) {
    act_on_process(rule);
  }
  return fault;
}

int spark_comm_host_set_faults(const char* text) {
  try {
    const std::scoped_lock lock{faults().mutex};
    load(text == nullptr ? "" : text, "spark_comm_host_set_faults");
  } catch (...) {
    return 1;
  }
  return process_fault_state == fault_state::refused ? 1 : 0;
}

int spark_comm_host_faults_applied() {
  const std::scoped_lock lock{faults().mutex};
  return faults().applied;
}

}  // namespace spark_comm::host
