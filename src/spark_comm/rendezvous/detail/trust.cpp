// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>
#include <spark_comm/rendezvous/secret.hpp>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <asio/ssl/error.hpp>
#include <cstddef>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <span>
#include <string_view>
#include <system_error>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr std::string_view identity_text = "spark_comm";
constexpr std::string_view derivation_label = "spark_comm rendezvous key 1";
constexpr const char* cipher_suite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> cipher_number = {0x13, 0x01};  // the same, RFC 8446 B.4

/// Where a context keeps its `trust`. The application's own slot is Asio's.
int trust_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

const trust& trust_of(const SSL* tls) {
  return *static_cast<const trust*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(tls), trust_slot()));
}

const unsigned char* as_unsigned(const void* data) {
  return static_cast<const unsigned char*>(data);
}

void require(bool is_done, const char* what) {
  if (!is_done) {
    throw error{errc::internal, std::string{"OpenSSL could not set up the encryption: "} + what};
  }
}

}  // namespace

trust::trust(const secret& key) : context_(asio::ssl::context::tlsv13) {
  const auto raw = key.reveal();
  unsigned int derived_bytes = 0;
  require(HMAC(EVP_sha256(),
               raw.data(),
               static_cast<int>(raw.size()),
               as_unsigned(derivation_label.data()),
               derivation_label.size(),
               key_.data(),
               &derived_bytes) != nullptr &&
              derived_bytes == key_.size(),
          "HMAC");
  SSL_CTX* const native = context_.native_handle();
  require(SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION) == 1, "TLS 1.3");
  require(SSL_CTX_set_ciphersuites(native, cipher_suite) == 1, cipher_suite);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  require(SSL_CTX_set_num_tickets(native, 0) == 1, "no tickets");
  require(SSL_CTX_set_ex_data(native, trust_slot(), this) == 1, "context data");
  SSL_CTX_set_psk_use_session_callback(native, offer_key);
  SSL_CTX_set_psk_find_session_callback(native, find_key);
}

trust::~trust() {
  OPENSSL_cleanse(key_.data(), key_.size());
}

SSL_SESSION* trust::make_session(SSL* tls) const noexcept {
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session == nullptr) {
    return nullptr;
  }
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(tls, cipher_number.data());
  if (cipher == nullptr || SSL_SESSION_set1_master_key(session, key_.data(), key_.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int trust::offer_key(SSL* tls,
                     const EVP_MD* digest,
                     const unsigned char** identity,
                     std::size_t* identity_bytes,
                     SSL_SESSION** session) {
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != EVP_MD_get_type(EVP_sha256())) {
    return 0;  // the peer asked again for a hash that is not ours
  }
  *session = trust_of(tls).make_session(tls);
  *identity = as_unsigned(identity_text.data());
  *identity_bytes = identity_text.size();
  return *session == nullptr ? 0 : 1;
}

int trust::find_key(SSL* tls,
                    const unsigned char* identity,
                    std::size_t identity_bytes,
                    SSL_SESSION** session) {
  *session = nullptr;
  const std::span offered{identity, identity_bytes};
  if (!std::ranges::equal(offered,
                          std::span{as_unsigned(identity_text.data()), identity_text.size()})) {
    return 1;  // no key of that name; without a certificate the handshake fails
  }
  *session = trust_of(tls).make_session(tls);
  return *session == nullptr ? 0 : 1;
}

bool is_proved(SSL* tls) noexcept {
  return SSL_version(tls) == TLS1_3_VERSION && SSL_session_reused(tls) == 1;
}

bool is_distrust(const std::error_code& failure) noexcept {
  return failure.category() == asio::error::get_ssl_category();
}

}  // namespace spark_comm::rendezvous::detail
