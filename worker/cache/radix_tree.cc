#include "worker/cache/radix_tree.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

struct LexicographicOrder {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

}  // namespace

class RadixTree::Node {
 public:
  Node* parent = nullptr;
  std::vector<uint32_t> tokens;  // page_size times pages.size()
  std::vector<int32_t> pages;
  // By the ids of their first page.
  std::map<std::vector<uint32_t>, std::unique_ptr<Node>, LexicographicOrder>
      children;
  int locks = 0;  // here and below
  uint64_t last_used = 0;
  uint64_t serial = 0;
};

bool RadixTree::EvictionOrder::operator()(const Node* a, const Node* b) const {
  return std::tie(a->last_used, a->serial) < std::tie(b->last_used, b->serial);
}

RadixTree::RadixTree(int page_size)
    : page_size_(page_size), root_(std::make_unique<Node>()) {}

RadixTree::~RadixTree() {
  // A chain of nodes as deep as a context would overflow the stack if each
  // destroyed its children.
  std::vector<std::unique_ptr<Node>> doomed;
  doomed.push_back(std::move(root_));
  while (!doomed.empty()) {
    const std::unique_ptr<Node> node = std::move(doomed.back());
    doomed.pop_back();
    for (auto& [key, child] : node->children)
      doomed.push_back(std::move(child));
  }
}

RadixTree::Position RadixTree::Match(absl::Span<const uint32_t> tokens,
                                     uint64_t step,
                                     std::vector<int32_t>* pages) {
  Position position{root_.get(), 0};
  while (tokens.size() >= page_size_) {
    const auto& children = position.node->children;
    const auto child = children.find(tokens.first(page_size_));
    if (child == children.end()) break;
    Node* node = child->second.get();
    const int common = CommonPages(*node, tokens);
    if (common < node->pages.size()) node = SplitAfter(node, common);
    Touch(node, step);
    pages->insert(pages->end(), node->pages.begin(), node->pages.end());
    position = {node, position.num_pages + common};
    tokens.remove_prefix(static_cast<size_t>(common) * page_size_);
  }
  return position;
}

RadixTree::Position RadixTree::Insert(absl::Span<const uint32_t> tokens,
                                      absl::Span<int32_t> pages, uint64_t step,
                                      std::vector<int32_t>* duplicates) {
  CHECK_EQ(tokens.size(), pages.size() * page_size_);
  std::vector<int32_t> present;
  Position position = Match(tokens, step, &present);
  for (size_t i = 0; i < present.size(); ++i) {
    if (pages[i] != present[i]) duplicates->push_back(pages[i]);
    pages[i] = present[i];
  }
  if (present.size() == pages.size()) return position;
  Node* leaf =
      AddChild(position.node, tokens.subspan(present.size() * page_size_),
               pages.subspan(present.size()), step);
  return {leaf, static_cast<int>(pages.size())};
}

void RadixTree::Lock(Node* node) {
  for (; node != root_.get(); node = node->parent) {
    if (node->locks == 0) {
      num_evictable_ -= static_cast<int>(node->pages.size());
      if (node->children.empty()) evictable_leaves_.erase(node);
    }
    ++node->locks;
  }
}

void RadixTree::Unlock(Node* node) {
  for (; node != root_.get(); node = node->parent) {
    CHECK_GT(node->locks, 0);
    --node->locks;
    if (node->locks > 0) continue;
    num_evictable_ += static_cast<int>(node->pages.size());
    if (node->children.empty()) evictable_leaves_.insert(node);
  }
}

void RadixTree::Evict(int count, std::vector<int32_t>* evicted) {
  CHECK_LE(count, num_evictable_);
  num_evictable_ -= count;
  num_pages_ -= count;
  while (count > 0) {
    Node* leaf = *evictable_leaves_.begin();
    const int taken = std::min<int>(count, leaf->pages.size());
    count -= taken;
    evicted->insert(evicted->end(), leaf->pages.end() - taken,
                    leaf->pages.end());
    if (taken == leaf->pages.size()) {
      RemoveLeaf(leaf);
    } else {
      leaf->pages.resize(leaf->pages.size() - taken);
      leaf->tokens.resize(leaf->pages.size() * page_size_);
    }
  }
}

void RadixTree::RemoveLeaf(Node* leaf) {
  evictable_leaves_.erase(leaf);
  Node* parent = leaf->parent;
  parent->children.erase(parent->children.find(
      absl::MakeConstSpan(leaf->tokens).first(page_size_)));
  if (IsEvictable(*parent)) evictable_leaves_.insert(parent);
}

RadixTree::Node* RadixTree::AddChild(Node* parent,
                                     absl::Span<const uint32_t> tokens,
                                     absl::Span<const int32_t> pages,
                                     uint64_t step) {
  if (IsEvictable(*parent)) evictable_leaves_.erase(parent);
  auto child = std::make_unique<Node>();
  Node* node = child.get();
  node->parent = parent;
  node->tokens.assign(tokens.begin(), tokens.end());
  node->pages.assign(pages.begin(), pages.end());
  node->last_used = step;
  node->serial = next_serial_++;
  const auto first_page = tokens.first(page_size_);
  parent->children.emplace(
      std::vector<uint32_t>(first_page.begin(), first_page.end()),
      std::move(child));
  num_pages_ += static_cast<int>(pages.size());
  num_evictable_ += static_cast<int>(pages.size());
  evictable_leaves_.insert(node);
  return node;
}

// Puts a new node above `node` that takes its first pages, and returns it.
// `node` stays what it was to those who hold it: the end of its prefix.
RadixTree::Node* RadixTree::SplitAfter(Node* node, int num_pages) {
  auto upper = std::make_unique<Node>();
  Node* const result = upper.get();
  const auto middle =
      node->tokens.begin() + static_cast<size_t>(num_pages) * page_size_;
  upper->parent = node->parent;
  upper->tokens.assign(node->tokens.begin(), middle);
  upper->pages.assign(node->pages.begin(), node->pages.begin() + num_pages);
  upper->locks = node->locks;
  upper->last_used = node->last_used;
  upper->serial = next_serial_++;

  const auto first_page = absl::MakeConstSpan(upper->tokens).first(page_size_);
  std::unique_ptr<Node>& slot = node->parent->children.find(first_page)->second;
  node->parent = result;
  node->tokens.erase(node->tokens.begin(), middle);
  node->pages.erase(node->pages.begin(), node->pages.begin() + num_pages);
  std::vector<uint32_t> key(node->tokens.begin(),
                            node->tokens.begin() + page_size_);
  upper->children.emplace(std::move(key), std::move(slot));
  slot = std::move(upper);
  return result;
}

int RadixTree::CommonPages(const Node& node,
                           absl::Span<const uint32_t> tokens) const {
  const size_t limit = std::min(node.tokens.size(), tokens.size());
  const auto end = std::mismatch(node.tokens.begin(),
                                 node.tokens.begin() + limit, tokens.begin())
                       .first;
  return static_cast<int>((end - node.tokens.begin()) / page_size_);
}

void RadixTree::Touch(Node* node, uint64_t step) {
  const bool listed = IsEvictable(*node);
  if (listed) evictable_leaves_.erase(node);
  node->last_used = step;
  if (listed) evictable_leaves_.insert(node);
}

bool RadixTree::IsEvictable(const Node& node) const {
  return &node != root_.get() && node.locks == 0 && node.children.empty();
}

std::vector<int32_t> RadixTree::AllPages() const {
  std::vector<int32_t> pages;
  std::vector<const Node*> rest = {root_.get()};
  while (!rest.empty()) {
    const Node* node = rest.back();
    rest.pop_back();
    pages.insert(pages.end(), node->pages.begin(), node->pages.end());
    for (const auto& [key, child] : node->children) rest.push_back(child.get());
  }
  return pages;
}

std::string RadixTree::ToString() const {
  std::string drawing;
  const std::function<void(const Node&, int)> draw = [&](const Node& node,
                                                         int level) {
    for (const auto& [key, child] : node.children) {
      absl::StrAppend(&drawing, std::string(2 * level, ' '),
                      absl::StrJoin(child->tokens, " "), " | ",
                      absl::StrJoin(child->pages, " "),
                      std::string(child->locks, '*'), "\n");
      draw(*child, level + 1);
    }
  };
  draw(*root_, 0);
  return drawing;
}

}  // namespace lockstep
