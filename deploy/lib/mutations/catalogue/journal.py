"""What is durable: rows, marks, copies of journals of older formats, and failures that stay."""

from mutations.mutation import Mutation

FOLDER = "Sources/Drivers/DeviceJournal"
JOURNAL = f"{FOLDER}/Journal.swift"
DAMAGE = r"DeviceJournalTests\.(DamageTests|DamageSweepTests|LogDamageTests|JournalTests|RowChecksumTests)"
FORMER = r"DeviceJournalTests\.FormerJournalTests"

MUTATIONS = [
    Mutation(
        "journal.checksum",
        "a row that is not as it was written is refused, by name",
        f"{FOLDER}/JournalRow.swift",
        "guard RowChecksum.of(content, row: row) == checksum else",
        "guard RowChecksum.of(content, row: row) == checksum || row > 0 else",
        DAMAGE,
    ),
    Mutation(
        "journal.checksum-of-place",
        "a row is not taken for one of another place",
        f"{FOLDER}/RowChecksum.swift",
        "XXH64_hash_t(bitPattern: row)",
        "XXH64_hash_t(bitPattern: row - row)",
        DAMAGE,
    ),
    Mutation(
        "journal.chain",
        "a row follows the one that it was written behind",
        f"{FOLDER}/JournalLoader.swift",
        "guard self.next ?? checksum == checksum else {",
        "guard self.next ?? checksum == checksum || row > 0 else {",
        DAMAGE,
    ),
    Mutation(
        "journal.mark",
        "a journal that lacks what was committed is not started on without a word",
        JOURNAL,
        "                row: self.records.rows.next - 1,\n",
        "                row: min(self.records.rows.next - 1, 1),\n",
        DAMAGE,
    ),
    Mutation(
        "journal.mark-checksum",
        "a damaged mark is no mark",
        f"{FOLDER}/JournalMark.swift",
        "guard Self.word(bytes, 56) == UInt64(bitPattern: RowChecksum.of(bytes[0..<56], row: 0)) else { return nil }\n",
        "",
        DAMAGE,
    ),
    Mutation(
        "journal.sync",
        "a commit is on stable storage when it has returned",
        f"{FOLDER}/JournalFile.swift",
        'try database.execute("PRAGMA synchronous = FULL")',
        'try database.execute("PRAGMA synchronous = NORMAL")',
        r"(DeviceJournalTests\.FaultJournalTests|WakeDispatchTests\.CrashSimulationTests)",
    ),
    Mutation(
        "journal.failure-stays",
        "nothing is committed behind a commit that has failed",
        JOURNAL,
        "            self.progress.fail(error)\n            throw error\n        }\n        self.noteCommit()",
        "            throw error\n        }\n        self.noteCommit()",
        r"DeviceJournalTests\.(FaultJournalTests|FaultStoreTests|CheckpointTests)",
    ),
    Mutation(
        "journal.live-records-copied",
        "a row is dropped when what counts of it has been copied",
        JOURNAL,
        "if row.liveBytes > 0 { try self.copyLiveRecords(of: self.records.rows.first, table) }",
        "if row.liveBytes > 100 { try self.copyLiveRecords(of: self.records.rows.first, table) }",
        r"DeviceJournalTests\.(CompactionTests|JournalTests)",
    ),
    Mutation(
        "journal.held-events",
        "events stay until the history has made them durable",
        JOURNAL,
        "let end = min(newest, self.releaseHeldRows())",
        "let end = max(newest, self.releaseHeldRows() & 0)",
        r"DeviceJournalTests\.HeldEventTests",
    ),
    Mutation(
        "journal.former-copy",
        "a journal of an older format is copied before it is taken over",
        JOURNAL,
        "if journal.format < JournalFile.format, let reader {",
        "if journal.format < 0, let reader {",
        FORMER,
    ),
    Mutation(
        "journal.former-copy-removed",
        "the copy of a journal of an older format is gone after the next good start",
        JOURNAL,
        "        } else if journal.loss == nil {\n            FormerJournal.removeAll(self.place)\n        }\n",
        "        }\n",
        FORMER,
    ),
    Mutation(
        "journal.former-copy-kept-at-loss",
        "a start that goes on without what was lost leaves the copy alone",
        JOURNAL,
        "        } else if journal.loss == nil {\n            FormerJournal.removeAll(self.place)\n        }\n",
        "        } else {\n            FormerJournal.removeAll(self.place)\n        }\n",
        FORMER,
    ),
]
