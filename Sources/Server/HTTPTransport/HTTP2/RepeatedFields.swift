import Wire

/// Runs of coded fields that repeat in every request of a connection, with their decoded fields.
///
/// A provider's pushes differ mainly in their paths. The other fields are a credential and references to the tables, so
/// the same bytes mean the same fields until the table changes. Such runs are compared in coded form and added as a
/// whole. Decoding each field would take a sixth of a push's time.
///
/// The type allocates a limited amount of memory, and only after `blocksBefore` requests.
@safe
struct RepeatedFields: ~Copyable {
    /// Consecutive fields of a block.
    private struct Run {
        /// The position of the run in `coded`, and the position of its decoded bytes in `text`.
        let coded: Range<Int>
        let text: Range<Int>
        /// The indices of the run's regular fields in `regular`, and of the fields with a property of `Request` in
        /// `named`.
        let regular: Range<Int>
        let named: Range<Int>
        /// The size of the run's fields, as HTTP/2 counts it.
        let listBytes: Int
        /// The rules before and after the run.
        let before: FieldRules
        let after: FieldRules
    }

    /// The state of a request before a run of its fields.
    struct Mark {
        fileprivate let rules: FieldRules
        fileprivate let receivedBytes: Int
        fileprivate let listBytes: Int
        fileprivate let fieldCount: Int

        init(_ block: FieldBlock, _ slot: StreamSlot) {
            self.rules = block.rules
            self.receivedBytes = slot.state.received.count
            self.listBytes = slot.state.headerListBytes
            self.fieldCount = slot.state.fieldCount
        }
    }

    private static let runsMax = 8
    private static let codedBytesMax = 4096
    private static let textBytesMax = 8192
    /// The number of blocks after which the next block is remembered. Blocks that change the table or contain all
    /// remembered runs reset the count.
    private static let blocksBefore = 2

    private var runs: [Run] = []
    private var coded = ByteBuffer()
    private var text = ByteBuffer()
    private var regular: [HeaderField] = []
    private var named: [PlacedField] = []
    /// The number of table changes when the runs were remembered.
    private var tableChanges = 0
    /// The number of blocks since a block last changed the table or contained all runs.
    private var blocks = 0

    /// True if runs are remembered.
    @inline(__always)
    var hasRuns: Bool { !self.runs.isEmpty }

    /// Begins another block. Drops all runs if the table has changed.
    ///
    /// - Parameter tableChanges: the number of changes of the table.
    /// - Returns: true if the block should be remembered.
    @inline(__always)
    mutating func blockBegins(tableChanges: Int) -> Bool {
        if tableChanges != self.tableChanges { self.tableChanged(tableChanges) }
        self.blocks += 1
        return self.blocks > Self.blocksBefore
    }

    @inline(never)
    private mutating func tableChanged(_ tableChanges: Int) {
        self.tableChanges = tableChanges
        self.blocks = 0
        self.removeAll()
    }

    private mutating func removeAll() {
        self.runs = []
        self.regular = []
        self.named = []
        self.coded.free()
        self.text.free()
    }

    /// Adds the fields of a run to a request, if the run is next in the block and fits the state of the request.
    ///
    /// - Parameters:
    ///   - index: the index of the run.
    ///   - bytes: the remaining bytes of the block.
    ///   - block: the state of the block.
    ///   - slot: the state of the request.
    ///   - listBytesMax: the maximum size of a header list in bytes.
    /// - Returns: the length of the run in the block in bytes; 0 if it was not added.
    @inline(__always)
    mutating func take(
        _ index: Int,
        from bytes: ByteView,
        _ block: inout FieldBlock,
        into slot: StreamSlot,
        listBytesMax: Int
    ) -> Int {
        guard index < self.runs.count else { return 0 }
        let run = self.runs[index]
        guard bytes.count >= run.coded.count, block.rules == run.before,
            slot.state.headerListBytes + run.listBytes <= listBytesMax,
            bytes.slice(0, count: run.coded.count) == self.coded.view[run.coded]
        else { return 0 }
        let start = slot.state.received.count
        slot.state.received.append(self.text.view[run.text])
        slot.state.headerListBytes += run.listBytes
        slot.state.append(self.regular[run.regular], movedBy: start)
        for place in run.named {
            let field = self.named[place]
            slot.state.name(field.field.moved(by: start), field.kind)
        }
        block.rules = run.after
        if index + 1 == self.runs.count { self.blocks = 0 }
        return run.coded.count
    }

    // MARK: Remembering runs

    /// Drops the remembered runs, and starts to remember the current block.
    mutating func beginToRemember() {
        self.removeAll()
        self.blocks = 0
    }

    /// Remembers a decoded run of a request's block.
    ///
    /// - Parameters:
    ///   - coded: the coded bytes of the run.
    ///   - mark: the state of the request before the run.
    ///   - block: the state of the block after the run.
    ///   - slot: the state of the request.
    mutating func remember(_ coded: ByteView, from mark: Mark, _ block: FieldBlock, in slot: StreamSlot) {
        let received = slot.state.received.view.dropFirst(mark.receivedBytes)
        guard !slot.state.isHeaderListTooLarge, self.runs.count < Self.runsMax,
            self.coded.count + coded.count <= Self.codedBytesMax, self.text.count + received.count <= Self.textBytesMax
        else { return }
        let (firstRegular, firstNamed) = (self.regular.count, self.named.count)
        slot.state.forEachPlacedField(from: mark.receivedBytes, regularFrom: mark.fieldCount) { place in
            if place.kind == .regular || place.kind == .host { self.regular.append(place.field) }
            if place.kind != .regular { self.named.append(place) }
        }
        self.runs.append(
            Run(
                coded: self.coded.count..<self.coded.count + coded.count,
                text: self.text.count..<self.text.count + received.count,
                regular: firstRegular..<self.regular.count,
                named: firstNamed..<self.named.count,
                listBytes: slot.state.headerListBytes - mark.listBytes,
                before: mark.rules,
                after: block.rules
            )
        )
        self.coded.append(coded)
        self.text.append(received)
    }
}
