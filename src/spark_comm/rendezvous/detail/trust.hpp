// SPDX-License-Identifier: AGPL-3.0-only
// TLS 1.3 with a pre-shared key and ephemeral Diffie-Hellman: both sides prove that they hold the
// key, and a key that leaks later opens nothing that was recorded. No certificates.
#pragma once

#include <spark_comm/rendezvous/secret.hpp>

#include <array>
#include <asio/ssl/context.hpp>
#include <cstddef>
#include <memory>
#include <openssl/ssl.h>
#include <system_error>

namespace spark_comm::rendezvous::detail {

/// What makes connections trusted; shared by all of a session. Not movable: OpenSSL points to it.
class trust {
 public:
  /// Throws: internal if OpenSSL refuses what every OpenSSL 3 has.
  explicit trust(const secret& key);
  trust(const trust&) = delete;
  trust& operator=(const trust&) = delete;
  trust(trust&&) = delete;
  trust& operator=(trust&&) = delete;
  ~trust();

  [[nodiscard]] asio::ssl::context& context() noexcept { return context_; }

 private:
  static int offer_key(SSL* tls,
                       const EVP_MD* digest,
                       const unsigned char** identity,
                       std::size_t* identity_bytes,
                       SSL_SESSION** session);
  static int find_key(SSL* tls,
                      const unsigned char* identity,
                      std::size_t identity_bytes,
                      SSL_SESSION** session);
  [[nodiscard]] SSL_SESSION* make_session(SSL* tls) const noexcept;

  asio::ssl::context context_;
  std::array<unsigned char, 32> key_{};  // derived from the secret for this use alone
};

/// The handshake ended in the key, not in a certificate or a resumption of something else.
[[nodiscard]] bool is_proved(SSL* tls) noexcept;

/// A handshake failed because of what the peer is, not because the network broke.
[[nodiscard]] bool is_distrust(const std::error_code& failure) noexcept;

}  // namespace spark_comm::rendezvous::detail
