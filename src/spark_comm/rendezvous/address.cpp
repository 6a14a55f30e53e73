// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <system_error>

namespace spark_comm::rendezvous {
namespace {

constexpr std::size_t longest_name = 253;  // RFC 1035, without the final dot
constexpr std::size_t longest_echo = 80;   // how much of a wrong text is repeated in an error

std::string quoted(std::string_view text) {
  std::string shown{text.substr(0, longest_echo)};
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > longest_echo ? fmt::format("'{}...'", shown) : fmt::format("'{}'", shown);
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw error{errc::invalid_argument, fmt::format("address {}: {}", quoted(text), why)};
}

bool is_ipv6(std::string_view host) {
  const auto percent = host.find('%');
  if (percent != std::string_view::npos && percent + 1 == host.size()) {
    return false;  // a scope sign without a scope
  }
  const std::string number{host.substr(0, percent)};
  in6_addr parsed{};
  return inet_pton(AF_INET6, number.c_str(), &parsed) == 1;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

std::uint16_t parse_port(std::string_view text, std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || failure != std::errc{} || end != digits.data() + digits.size()) {
    refuse(text, fmt::format("port {} is not a number from 0 to 65535", quoted(digits)));
  }
  return port;
}

address parse_bracketed(std::string_view text) {
  const auto close = text.find(']');
  if (close == std::string_view::npos) {
    refuse(text, "the closing bracket is missing; write [ipv6]:port");
  }
  const std::string_view host = text.substr(1, close - 1);
  if (!is_ipv6(host)) {
    refuse(text, "what stands in the brackets is not an IPv6 address");
  }
  const std::string_view rest = text.substr(close + 1);
  if (rest.empty() || rest.front() != ':') {
    refuse(text, fmt::format("the port is missing; write [{}]:port", host));
  }
  return {.host = std::string{host}, .port = parse_port(text, rest.substr(1))};
}

void check_name(std::string_view text, std::string_view host) {
  if (host.empty()) {
    refuse(text, "the host is missing; write host:port (0.0.0.0 or [::] for every interface)");
  }
  if (host.size() > longest_name || !std::ranges::all_of(host, is_name_character)) {
    refuse(text, fmt::format("{} is neither a host name nor an address", quoted(host)));
  }
}

constexpr std::string_view file_scheme = "file://";

void check_file(std::string_view text) {
  const std::string_view path = text.substr(file_scheme.size());
  if (path.size() < 2 || path.front() != '/' || path.back() == '/') {
    refuse(text, "write file:///folder/name, with the full path of a file");
  }
}

}  // namespace

address parse_address(std::string_view text) {
  if (text.empty()) {
    refuse(text, "it is empty; write host:port or [ipv6]:port");
  }
  if (text.front() == '[') {
    return parse_bracketed(text);
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    refuse(text, "the port is missing; write host:port");
  }
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.find(':') != std::string_view::npos) {
    refuse(text,
           is_ipv6(host) ? fmt::format("an IPv6 address needs brackets; write [{}]:{}", host, port)
                         : "more than one colon; write host:port, or [ipv6]:port with "
                           "brackets around an IPv6 address");
  }
  check_name(text, host);
  return {.host = std::string{host}, .port = parse_port(text, port)};
}

std::string to_string(const address& where) {
  return where.host.find(':') == std::string::npos ? fmt::format("{}:{}", where.host, where.port)
                                                   : fmt::format("[{}]:{}", where.host, where.port);
}

address join_address(std::string_view host, std::string_view port) {
  return parse_address(is_ipv6(host) ? fmt::format("[{}]:{}", host, port)
                                     : fmt::format("{}:{}", host, port));
}

void check_place(const world& place) {
  if (place.world_size < 1 || place.world_size > max_world_size) {
    throw error{errc::invalid_argument,
                fmt::format("world size {} is not from 1 to {}", place.world_size, max_world_size)};
  }
  if (place.rank < 0 || place.rank >= place.world_size) {
    throw error{errc::invalid_argument,
                fmt::format("rank {} is not from 0 to {} (world size {})",
                            place.rank,
                            place.world_size - 1,
                            place.world_size)};
  }
  if (place.world_size == 1 && place.address.empty()) {
    return;
  }
  if (place.address.starts_with(file_scheme)) {
    check_file(place.address);
    return;
  }
  if (parse_address(place.address).port == 0 && place.rank != 0) {
    refuse(place.address, "port 0 is for rank 0 only; give the port on which rank 0 listens");
  }
}

}  // namespace spark_comm::rendezvous
