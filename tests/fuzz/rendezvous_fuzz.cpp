// SPDX-License-Identifier: AGPL-3.0-only
// Fuzz target of all that a rendezvous reads: messages of peers, addresses, a SLURM node list, the
// file of a meeting point. The first byte says which.
#include "fuzz/fuzz_target.hpp"
#include "fuzz/wire_property.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/file_point.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/environment.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::rendezvous {
namespace {

using fuzz::require;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What is taken reads back as itself; what is refused is refused as a wrong argument.
void check_address(std::string_view text) {
  try {
    const address where = parse_address(text);
    require(parse_address(to_string(where)) == where);
    require(join_address(where.host, std::to_string(where.port)) == where);
  } catch (const error& refused) {
    require(refused.kind() == errc::invalid_argument);
  }
}

void check_node_list(std::string_view text) {
  try {
    require(!first_slurm_node(text).empty());
  } catch (const error& refused) {
    require(refused.kind() == errc::invalid_argument);
  }
}

void check_point(std::string_view text) {
  const detail::resolution found = detail::parse_point(text, 3);
  require(found.endpoints.empty() != found.failure.empty());
}

std::string message(std::span<const std::byte> body) {
  return "m" + text_of(body);
}

}  // namespace
}  // namespace spark_comm::rendezvous

std::vector<std::string> fuzz_seeds() {
  using namespace spark_comm::rendezvous;
  using namespace spark_comm::rendezvous::detail;
  hello_message hello;
  hello.rank = 1;
  hello.world_size = 2;
  hello.listener = "[fe80::1%eth0]:4000";
  hello.facts = {{"NCCL version", "2.28.9", fact_rule::equal, "/lib/libnccl.so.2"},
                 {"device", "00ff", fact_rule::distinct}};
  return {
      message(encode(hello)),
      message(encode(refusal_message{"world size differs"})),
      message(encode(waiting_message{{1, 2, 3}})),
      message(encode(roster_message{
          .round = 3, .secret = {}, .members = {0, 1}, .listeners = {"", "127.0.0.1:1"}})),
      message(encode(round_message{7})),
      message(encode(mesh_hello_message{.rank = 1, .secret = {}})),
      message(encode(step_message{.step = 1, .payload = {}})),
      message(encode_header({.body_bytes = 3, .kind = frame_kind::remark})),
      "ahost.example:29500",
      "a[fe80::1%eth0]:1",
      "a::1:29500",
      "sgpu[003-007,9]-x[1-2],login1",
      "snode1,node2",
      "p" + point_text(3, {*try_parse_numeric("10.0.0.1:5"), *try_parse_numeric("[::1]:5")}),
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spark_comm::rendezvous;
  if (size == 0) {
    return 0;
  }
  const auto rest = std::as_bytes(std::span{data, size}.subspan(1));
  switch (*data) {
    case 'm': spark_comm::fuzz::require(detail::decoders_hold(rest)); break;
    case 'a': check_address(text_of(rest)); break;
    case 's': check_node_list(text_of(rest)); break;
    case 'p': check_point(text_of(rest)); break;
    default:  break;
  }
  return 0;
}
