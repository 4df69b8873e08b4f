// The column `record` of a COPY: what the references lead to, copied as it is stored.
#pragma once

#include <optional>

#include "copy_plan.h"
#include "copy_spool.h"
#include "referenced_packs.h"

namespace iac::duckdb {

class RecordCopier {
 public:
  RecordCopier(const CopyPlan& plan, unsigned threads, RecordSpool& spool);

  // Adds the records of a chunk. Throws Error naming the row, or the pack and its row.
  void add(duckdb_data_chunk chunk, size_t count);

  // The codec of all records so far, with the parameters that their packs agree on.
  CodecSpec codec() const;

 private:
  static constexpr size_t max_packs = 32;  // at a time, for each costs a descriptor

  // The records of a part that lie in one pack.
  struct Source {
    std::shared_ptr<const Pack> pack;
    Group group;
    size_t next = 0;  // of the group, to be read next
  };

  // Adds records of up to max_packs packs.
  void add_part(const std::vector<std::optional<Reference>>& references);
  void agree_on_codec(const CodecSpec& spec, const Pack& pack, int64_t row);
  void copy(std::vector<Source>& sources, size_t first, size_t count);

  const CopyPlan& plan_;
  unsigned threads_;
  RecordSpool& spool_;
  ReferencedPacks packs_{max_packs};
  std::optional<CodecSpec> codec_;
};

}  // namespace iac::duckdb
