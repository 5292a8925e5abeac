#include "restore-job.hpp"

#include "bytes.hpp"
#include "sha256.hpp"

namespace agentrewind {
namespace {

constexpr uint8_t knownFlag = 1;
constexpr uint8_t sharedFlag = 2;

Known readKnown(ByteReader& reader, uint8_t flags, uint8_t type) {
  Known known;
  known.ino = reader.u64();
  known.ctimeNs = reader.i64();
  known.mtimeNs = reader.i64();
  known.size = reader.u64();
  known.type = static_cast<EntryType>(type);
  known.shared = (flags & sharedFlag) != 0;
  return known;
}

bool readJob(ByteReader& reader, std::vector<Job>& jobs) {
  Job job;
  const uint8_t operation = reader.u8();
  if (operation < 1 || operation > 8) return false;
  job.operation = static_cast<Operation>(operation);
  const uint8_t flags = reader.u8();
  const uint8_t knownType = reader.u8();
  reader.u8();
  const uint32_t pathLength = reader.u32();
  const uint32_t fromLength = reader.u32();
  const uint32_t temporaryLength = reader.u32();
  const uint32_t entryLength = reader.u32();
  const uint32_t blockCount = reader.u32();
  if ((flags & knownFlag) != 0) job.known = readKnown(reader, flags, knownType);
  job.path = reader.take(pathLength);
  job.from = reader.take(fromLength);
  job.temporary = reader.take(temporaryLength);
  if (entryLength > 0) {
    job.entry = decodeEntry(reader.take(entryLength));
    if (!job.entry) return false;
  }
  for (uint32_t i = 0; i < blockCount && reader.ok(); i++) {
    Block block;
    block.pack = static_cast<int32_t>(reader.u32());
    block.length = reader.u32();
    block.offset = reader.u64();
    block.position = reader.u64();
    block.pages = reader.u64();
    block.name = reader.take(sizeof(Sha256));
    job.blocks.push_back(block);
  }
  const bool needsEntry = job.operation == Operation::stage || job.operation == Operation::setMetadata;
  if (!reader.ok() || needsEntry != job.entry.has_value()) return false;
  jobs.push_back(std::move(job));
  return true;
}

}  // namespace

std::optional<std::vector<Job>> decodeJobs(std::string_view bytes) {
  ByteReader reader(bytes);
  std::vector<Job> jobs;
  while (!reader.atEnd()) {
    if (!readJob(reader, jobs)) return std::nullopt;
  }
  return jobs;
}

}  // namespace agentrewind
