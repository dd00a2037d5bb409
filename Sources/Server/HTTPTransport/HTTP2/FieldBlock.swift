package import Wire

/// The field block that is being read, as far as its request needs it.
package struct FieldBlock {
    /// How many times the limit a header list may take before its stream is reset instead of answered 431: 16 KiB of
    /// references stand for a list of up to 60 MiB, all of which has to be looked at (RFC 7541 §7.3).
    static let overlongListFactor = 4

    /// The stream whose block it is; nil when its fields are not wanted: the library has not taken its first frame, or
    /// there was a fault in them.
    package private(set) var stream: Int32?
    /// What is known of its fields.
    private(set) var rules = FieldRules.head
    /// What they take, as HTTP/2 counts it, where nobody else counts them.
    private var bytes = 0

    /// There is no block yet.
    package init() {}

    /// The stream is gone, or the fields are not wanted: what follows is read and dropped.
    package mutating func drop() {
        self.stream = nil
    }

    /// The library has taken the first frame of a block.
    package mutating func taken(for stream: Int32, isRequest: Bool) {
        self.stream = stream
        self.rules = isRequest ? .head : .trailers
        self.bytes = 0
    }

    /// A run of fields has been taken as a whole, which leaves the request within all limits.
    ///
    /// - Parameter rules: what is known of the fields now.
    mutating func runTaken(_ rules: FieldRules) {
        self.rules = rules
    }

    /// A field has come that is wanted.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - value: its value.
    ///   - note: what `FieldRules.admit` has left in it.
    ///   - slot: where the request is kept; nil, or one that is not receiving, to keep nothing.
    ///   - listBytesMax: the most bytes of a header list.
    /// - Returns: why its stream is to be reset; nil when it is not.
    @inline(__always)
    package mutating func fieldReceived(
        _ name: ByteView,
        _ value: ByteView,
        _ note: inout UInt32,
        into slot: @autoclosure () -> StreamSlot?,
        listBytesMax: @autoclosure () -> Int
    ) -> HTTP2ErrorCode? {
        guard let kind = self.rules.admit(name, value, &note) else { return .protocolError }
        if let slot = slot(), slot.state.phase == .receiving {
            slot.state.fieldReceived(name, value, kind, headerListBytesMax: listBytesMax())
            guard slot.state.isHeaderListTooLarge else { return nil }
            self.bytes = slot.state.headerListBytes
        } else {
            self.bytes += name.count + value.count + 32
        }
        return self.bytes > listBytesMax() * Self.overlongListFactor ? .enhanceYourCalm : nil
    }
}

/// The fields that come with every request of a connection, coded alike each time, and what became of them once.
///
/// A provider's pushes differ in their paths and in little else. All other fields are references to the tables, and the
/// credential: the same bytes each time, which mean the same fields for as long as the table does not change. Runs of
/// such fields are compared as they are coded, and taken as a whole, where reading them field by field takes a sixth of
/// a push.
///
/// It takes no memory before a connection has sent `blocksBefore` requests, and a bounded amount from then on.
@safe
struct RepeatedFields: ~Copyable {
    /// Fields that stand together in a block.
    private struct Run {
        /// Where it is in `coded` and `text`.
        let coded: Range<Int>
        let text: Range<Int>
        /// Where its regular fields are in `regular`, and in `named` those that a request knows by what they are.
        let regular: Range<Int>
        let named: Range<Int>
        /// What its fields take, as HTTP/2 counts it.
        let listBytes: Int
        /// What is known of a request's fields before it and behind it.
        let before: FieldRules
        let after: FieldRules
    }

    /// What is known of a request before a run of its fields.
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
    /// How many blocks that change no table come before one is remembered, and come otherwise before another is.
    private static let blocksBefore = 2

    private var runs: [Run] = []
    private var coded = ByteBuffer()
    private var text = ByteBuffer()
    private var regular: [HeaderField] = []
    private var named: [PlacedField] = []
    /// How often the table had changed when the runs were noted.
    private var tableChanges = 0
    /// The blocks since the last that changed the table, or that had all the runs.
    private var blocks = 0

    /// Whether the next block may have one of the runs.
    @inline(__always)
    var hasRuns: Bool { !self.runs.isEmpty }

    /// Another block begins: forgets what no longer holds.
    ///
    /// - Parameter tableChanges: how often the table has changed.
    /// - Returns: whether the block is to be remembered.
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

    /// Takes a run, if it is the next of a request's block, and holds there.
    ///
    /// - Parameters:
    ///   - index: the place of the run among the runs.
    ///   - bytes: what is left of the block.
    ///   - block: what is known of it.
    ///   - slot: where the request is kept.
    ///   - listBytesMax: the most bytes of a header list.
    /// - Returns: how many bytes it takes in the block; 0 when it was not taken.
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
        block.runTaken(run.after)
        if index + 1 == self.runs.count { self.blocks = 0 }
        return run.coded.count
    }

    // MARK: What is remembered

    /// A block is remembered from here on instead of the one before.
    mutating func beginToRemember() {
        self.removeAll()
        self.blocks = 0
    }

    /// Remembers a run of a request's block that was read.
    ///
    /// - Parameters:
    ///   - coded: the run.
    ///   - mark: what was known before it.
    ///   - block: what is known now.
    ///   - slot: where the request is kept.
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
