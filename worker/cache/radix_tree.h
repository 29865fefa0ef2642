#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

// Which page holds the keys and values of which run of token ids, for every
// cached prefix. Each edge is one or more pages' worth of ids; two prefixes
// share the pages up to the last page border before they differ.
//
//   RadixTree tree(/*page_size=*/2);
//   tree.Insert({1, 2, 3, 4}, {7, 5}, step);
//   tree.Insert({1, 2, 9, 9}, {7, 6}, step);   //  [1 2]──[3 4]
//   tree.Match({1, 2, 3, 4, 5}, step);         //       └─[9 9]
//
// A lock on a node keeps it and all above it. Eviction takes the tails of
// unlocked leaves, the least recently used first; use is counted in steps, and
// of those used in the same step the one made first goes first. Nothing here
// depends on addresses or hashes. Single-threaded.
class RadixTree {
 public:
  class Node;

  // The end of a matched or inserted prefix. Moves with the tree: splits leave
  // it valid, and so does eviction while it is locked.
  struct Position {
    Node* node;     // the root for the empty prefix
    int num_pages;  // of the prefix
  };

  explicit RadixTree(int page_size);
  ~RadixTree();

  RadixTree(const RadixTree&) = delete;
  RadixTree& operator=(const RadixTree&) = delete;

  // The longest cached prefix of `tokens` in whole pages, marked as used in
  // `step`; its pages are appended to `pages`.
  Position Match(absl::Span<const uint32_t> tokens, uint64_t step,
                 std::vector<int32_t>* pages);

  // Adds what is missing of `tokens`, whole pages held by `pages`. For the
  // pages that the tree already had, `pages` is rewritten to the tree's and the
  // ids that were there are appended to `duplicates` where they differ.
  Position Insert(absl::Span<const uint32_t> tokens, absl::Span<int32_t> pages,
                  uint64_t step, std::vector<int32_t>* duplicates);

  void Lock(Node* node);
  void Unlock(Node* node);

  // Takes out `count` pages and appends them to `evicted`.
  // REQUIRES: count <= num_evictable().
  void Evict(int count, std::vector<int32_t>* evicted);

  int num_pages() const { return num_pages_; }
  int num_evictable() const { return num_evictable_; }

  // Every page in the tree, for checks.
  std::vector<int32_t> AllPages() const;

  // One line a node, for tests: two spaces a level, ids, " | ", pages, and
  // "*" a lock.
  std::string ToString() const;

 private:
  struct EvictionOrder {
    bool operator()(const Node* a, const Node* b) const;
  };

  Node* AddChild(Node* parent, absl::Span<const uint32_t> tokens,
                 absl::Span<const int32_t> pages, uint64_t step);
  void RemoveLeaf(Node* leaf);
  Node* SplitAfter(Node* node, int num_pages);
  int CommonPages(const Node& node, absl::Span<const uint32_t> tokens) const;
  void Touch(Node* node, uint64_t step);
  bool IsEvictable(const Node& node) const;

  const int page_size_;
  std::unique_ptr<Node> root_;
  std::set<Node*, EvictionOrder> evictable_leaves_;
  int num_pages_ = 0;
  int num_evictable_ = 0;
  uint64_t next_serial_ = 0;
};

}  // namespace lockstep
