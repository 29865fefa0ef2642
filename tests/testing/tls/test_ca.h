#pragma once

#include <openssl/x509.h>

#include <memory>
#include <string>

namespace lockstep::testing {

// A certificate and its key, as PEM.
struct Issued {
  std::string certificate;
  std::string key;
};

// An authority that lives as long as a test, and the certificates it gives out.
//
//   TestCa ca("ours");
//   const Issued server = ca.Issue({.name = "server"});
//
// P-256 keys, made anew each time. One thread.
class TestCa {
 public:
  struct Wish {
    std::string name = "localhost";  // also a DNS name; 127.0.0.1 is always one
    // Days from now.
    int from = -1;
    int until = 1;
  };

  explicit TestCa(const std::string& name);

  const std::string& certificate() const { return certificate_; }

  Issued Issue(const Wish& wish) const;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  static Key MakeKey();
  // Signed by `issuer`, which is itself for the authority's own.
  Certificate Sign(const Wish& wish, EVP_PKEY* subject_key,
                   bool is_authority) const;

  Key key_;
  Certificate own_;
  std::string certificate_;
};

}  // namespace lockstep::testing
