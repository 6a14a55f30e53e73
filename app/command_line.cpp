// SPDX-License-Identifier: AGPL-3.0-only
#include "command_line.hpp"

#include "bench_options.hpp"
#include "build_info.hpp"
#include "demo.hpp"
#include "doctor/doctor.hpp"
#include "exit_code.hpp"
#include "info.hpp"
#include "launch.hpp"
#include "operation.hpp"
#include "option_values.hpp"
#include "trace.hpp"

#include <spark_comm/supervise/operation.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

/// The parsed values of all verbs.
struct values {
  bench_options bench;
  tune_options tune;
  job_options check;
  info_options info;
  launch_options launch;
  trace_options trace;
  doctor_options doctor;
  std::string mishap_name = "all";
  std::vector<std::string> help_topic;
};

void add_runtime(CLI::App& verb, runtime_kind& kind, std::string& nccl_library) {
  add_named(verb, "--runtime", kind, runtime_names(), "which driver and NCCL to load");
  verb.add_option("--nccl", nccl_library, "NCCL library by path (default: libnccl.so.2)")
      ->type_name("PATH");
}

void add_job(CLI::App& verb, job_options& job) {
  add_runtime(verb, job.runtime, job.nccl_library);
  verb.add_option("--ranks", job.ranks, "processes to start, one rank each")
      ->type_name("N")
      ->capture_default_str();
  verb.add_flag("--share-gpu", job.share_gpu, "let several ranks use one GPU");
  add_duration(verb, "--deadline", job.deadline, "limit of the join and of every operation");
  add_duration(verb, "--limit", job.limit, "limit of the whole run");
}

void add_path(CLI::App& verb, bench_options& options) {
  constexpr std::array paths = {path_kind::nccl,
                                path_kind::exchange,
                                path_kind::one_shot,
                                path_kind::two_shot,
                                path_kind::low_latency};
  const std::string accepted = "auto, nccl, exchange, one_shot, two_shot, low_latency";
  const auto take = [&options, paths, accepted](const CLI::results_t& given) {
    const auto at =
        std::ranges::find_if(paths, [&](path_kind path) { return name_of(path) == given.front(); });
    if (at == paths.end() && given.front() != "auto") {
      throw refused("--path", given.front(), accepted);
    }
    options.path = at == paths.end() ? std::nullopt : std::optional{*at};
    return true;
  };
  verb.add_option("--path", take, "the way that all_reduce goes: " + accepted)
      ->type_name("NAME")
      ->default_str("auto");
  verb.add_flag_callback(
      "--graph", [&options] { options.mode = timing_mode::graph; }, "the same as --mode graph");
}

void add_bench(CLI::App& root, values& into) {
  CLI::App& verb =
      *root.add_subcommand("bench", "measure an operation, after checking its results");
  bench_options& options = into.bench;
  add_named(verb, "operation", options.what, operation_table(), "what to measure")->required();
  add_size(verb, "--min", options.min_bytes, "smallest size (8, 4K, 1M, 2G; K = 1024)");
  add_size(verb, "--max", options.max_bytes, "largest size (default: 64M on GPUs, 16M on the CPU)");
  verb.add_option("--factor", options.factor, "from one size to the next")
      ->type_name("N")
      ->capture_default_str();
  add_named(verb, "--dtype", options.dtype, data_type_names(), "element type");
  add_named(verb, "--op", options.op, reduce_op_names(), "reduction");
  verb.add_option("--root", options.root, "root rank")->type_name("RANK")->capture_default_str();
  verb.add_option("--iterations", options.iterations, "timed operations a size")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--warmup", options.warmup, "operations before them that do not count")
      ->type_name("N")
      ->capture_default_str();
  add_named(verb, "--mode", options.mode, timing_mode_names(), "how time is taken");
  add_path(verb, options);
  verb.add_option("--link", options.link_gigabits, "speed of the link in Gb/s, to judge by")
      ->type_name("GBITS");
  verb.add_option("--json", options.json_file, "also write the result to this file")
      ->type_name("FILE");
  add_job(verb, options.job);
}

void add_check(CLI::App& root, values& into) {
  CLI::App& verb = *root.add_subcommand("check", "check every operation, element by element");
  add_job(verb, into.check);
}

void add_info(CLI::App& root, values& into) {
  CLI::App& verb = *root.add_subcommand("info", "show what was loaded and what works here");
  add_runtime(verb, into.info.runtime, into.info.nccl_library);
  verb.add_flag("--json", into.info.as_json, "print JSON");
}

void add_doctor(CLI::App& root, values& into) {
  CLI::App& verb = *root.add_subcommand(
      "doctor", "say what is wrong with this machine, or between two, and what mends it");
  doctor_options& options = into.doctor;
  verb.add_option("--root", options.root, "judge this folder or recording instead of this machine")
      ->type_name("PATH");
  verb.add_option("--record", options.record_file, "also write a recording of what was read")
      ->type_name("FILE");
  verb.add_option("--peer", options.peer, "where two machines meet, the same on both")
      ->type_name("HOST:PORT");
  verb.add_option("--rank", options.rank, "0 listens there, 1 connects (default: by the address)")
      ->type_name("N");
  add_duration(verb, "--deadline", options.deadline, "limit of the meeting and the burst");
  verb.add_flag("--json", options.as_json, "print JSON");
}

void add_launch(CLI::App& root, values& into) {
  CLI::App& verb = *root.add_subcommand(
      "launch", "start a program as ranks of one job: launch -n 2 -- ./program");
  launch_options& options = into.launch;
  verb.add_option("-n,--ranks", options.ranks, "processes to start on each node, one rank each")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--nodes", options.nodes, "machines of the job; prints what to run on each")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--node-rank", options.node_rank, "which of them this is: start its ranks")
      ->type_name("N");
  verb.add_option("--head", options.head, "where rank 0 listens, an address of node 0")
      ->type_name("HOST:PORT");
  verb.add_option("--key-file", options.key_file, "the key that the nodes share, in a file on each")
      ->type_name("FILE");
  verb.add_flag("--share-gpu", options.share_gpu, "let several ranks use one GPU");
  add_duration(verb, "--limit", options.limit, "limit of the whole run (default: none)");
  verb.add_option("program", options.program, "the program and its arguments, after --")
      ->expected(-1);
}

void add_trace(CLI::App& root, values& into) {
  CLI::App& verb = *root.add_subcommand(
      "trace", "say what the flight records of the ranks tell: who is stuck, who diverged");
  verb.add_option("directory", into.trace.directory, "where the .flight files are")->required();
  verb.add_option("--perfetto", into.trace.perfetto_file, "also write a trace for Perfetto")
      ->type_name("FILE");
  verb.add_option("--last", into.trace.last, "operations of each rank to list")
      ->type_name("N")
      ->capture_default_str();
}

void add_tune(CLI::App& root, values& into) {
  CLI::App& verb =
      *root.add_subcommand("tune", "measure all_reduce on every path and write the table of paths");
  verb.add_option("--table", into.tune.table_file, "the file to write")
      ->type_name("FILE")
      ->capture_default_str();
  add_size(verb, "--max", into.tune.max_bytes, "largest message to measure");
  add_job(verb, into.tune.job);
}

void add_demo(CLI::App& root, values& into) {
  CLI::App& verb =
      *root.add_subcommand("demo", "make two ranks fail on purpose, and show what they are told");
  verb.add_option("mishap", into.mishap_name, "all, mismatch, dead or frozen")
      ->capture_default_str();
}

demo_options to_demo(const std::string& name) {
  if (name == "all") {
    return {};
  }
  const std::optional<mishap> what = parse_mishap(name);
  if (!what) {
    throw usage_failure(fmt::format("demo: {}: accepted are all, mismatch, dead, frozen", name));
  }
  return {.what = what};
}

std::string version_line() {
  return fmt::format("spark-comm {} ({})\n", build_version(), build_commit());
}

/// "bench" for what was typed after "help", or the tool itself.
std::string help_for(CLI::App& root, const std::vector<std::string>& topic) {
  // Else the help of the verb that was parsed, which is "help", would be shown.
  root.clear();
  if (topic.empty()) {
    return root.help();
  }
  for (CLI::App* const verb : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == topic.front()) {
      return verb->help();
    }
  }
  throw usage_failure(fmt::format("help {}: accepted are {}", topic.front(), verb_names(root)));
}

/// One line that names what is accepted.
failure explain(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App* verb = &root;
  for (const CLI::App* parsed : root.get_subcommands()) {
    verb = parsed;
  }
  const std::string name = verb == &root ? "" : verb->get_name() + ": ";
  const bool is_unknown_argument = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (verb == &root) {
    return usage_failure(
        fmt::format("{}: accepted are {}", one_line(error.what()), verb_names(root)));
  }
  if (is_unknown_argument) {
    return usage_failure(
        fmt::format("{}{}: accepted are {}", name, one_line(error.what()), option_names(*verb)));
  }
  return usage_failure(name + one_line(error.what()));
}

request to_request(CLI::App& root, values& parsed) {
  if (root.got_subcommand("bench")) {
    validate(parsed.bench);
    return bench_request{std::move(parsed.bench)};
  }
  if (root.got_subcommand("check")) {
    validate(parsed.check);
    return check_request{std::move(parsed.check)};
  }
  if (root.got_subcommand("launch")) {
    validate(parsed.launch);
    return launch_request{std::move(parsed.launch)};
  }
  if (root.got_subcommand("trace")) {
    return trace_request{std::move(parsed.trace)};
  }
  if (root.got_subcommand("tune")) {
    validate(parsed.tune);
    return tune_request{std::move(parsed.tune)};
  }
  if (root.got_subcommand("demo")) {
    return demo_request{to_demo(parsed.mishap_name)};
  }
  if (root.got_subcommand("doctor")) {
    validate(parsed.doctor);
    return doctor_request{std::move(parsed.doctor)};
  }
  if (root.got_subcommand("info")) {
    return info_request{std::move(parsed.info)};
  }
  return show_text{help_for(root, parsed.help_topic)};
}

}  // namespace

request parse_command_line(const std::vector<std::string>& arguments) {
  values parsed;
  CLI::App root{"Communication for LLM inference over NCCL: look, measure, check.", "spark-comm"};
  root.set_version_flag("--version", version_line());
  root.require_subcommand(1);
  add_bench(root, parsed);
  add_check(root, parsed);
  add_info(root, parsed);
  add_doctor(root, parsed);
  add_launch(root, parsed);
  add_trace(root, parsed);
  add_demo(root, parsed);
  add_tune(root, parsed);
  root.add_subcommand("help", "show this, or the options of a verb")
      ->add_option("verb", parsed.help_topic, "the verb")
      ->expected(0, 1);
  if (arguments.empty()) {
    throw usage_failure("no verb: accepted are " + verb_names(root));
  }
  // CLI11 takes them from the back.
  std::vector<std::string> reversed{arguments.rbegin(), arguments.rend()};
  try {
    root.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> verbs = root.get_subcommands();
    return show_text{verbs.empty() ? root.help() : verbs.front()->help()};
  } catch (const CLI::CallForVersion&) {
    return show_text{version_line()};
  } catch (const CLI::ParseError& error) {
    throw explain(root, error);
  }
  return to_request(root, parsed);
}

}  // namespace spark_comm::app
