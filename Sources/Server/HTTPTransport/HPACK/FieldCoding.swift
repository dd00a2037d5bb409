package import Wire

/// Memory that the decoders of one loop share. Only one decoder uses it at a time.
@safe
package struct FieldDecoderMemory: ~Copyable {
    /// The name and the value of the literal field being decoded.
    var literal = ByteBuffer()
    /// The notes of the static table's entries, by index; index 0 is unused.
    var staticNotes = InlineArray<62, UInt32>(repeating: 0)

    /// Creates empty memory.
    package init() {}
}

/// Decodes the field blocks of one connection: RFC 7541.
///
/// This decoder remembers the coded form of the last credential. For each entry of the tables, it also remembers a
/// number that the caller sets, the note. The decoder of libnghttp2 would take a quarter of the time of a push. It
/// decodes every Huffman byte in two steps, and the provider's token again in each push.
///
/// A block may arrive in parts. An incomplete field at the end of a part is stored until the next part arrives.
@safe
package struct FieldDecoder: ~Copyable {
    /// An error that ends the connection: COMPRESSION_ERROR.
    package struct Fault: Error {}

    private enum Stop: Error {
        case fault
        /// The field is incomplete. The value is the number of bytes it needs at least.
        case needs(Int)
    }

    /// The announced size of the dynamic table, which is the initial size in HTTP/2.
    package static let tableBytesMax = 4096
    /// The maximum capacity, in bytes, of the literal buffer between fields.
    private static let keptBytesMax = 16_384

    /// The maximum number of bytes of a literal name and its coded value (RFC 7541 §7.4). It also limits the memory for
    /// an incomplete field.
    private let literalBytesMax: Int
    private var table = DynamicTable(sizeMax: FieldDecoder.tableBytesMax)
    private var credential = CredentialMemo()
    /// The received bytes of an incomplete field, and the number of bytes at which decoding is tried again.
    private var pending = ByteBuffer()
    private var pendingNeeds = 0
    /// True if no field of the block has been decoded. The size of the table may only change then.
    private var isAtStart = true

    /// Creates a decoder with an empty table for a new connection.
    ///
    /// - Parameter literalBytesMax: the maximum number of bytes of a literal name and its coded value.
    package init(literalBytesMax: Int = 32_000) {
        self.literalBytesMax = literalBytesMax
    }

    /// The number of changes of the table. While it is constant, equal bytes mean equal fields.
    var tableChanges: Int { self.table.changes }

    /// Records that fields of the block were recognized by their bytes and not decoded.
    mutating func fieldsTaken() {
        self.isAtStart = false
    }

    /// The number of stored bytes of an incomplete field.
    var pendingBytes: Int { self.pending.count }

    /// Decodes the next part of a block. Calls `take` with the name and the value of each field that ends in the part,
    /// in order.
    ///
    /// The name and the value are valid only during the call. `take` may change the note, which is initially 0. The
    /// entry of a table keeps its note for later calls.
    ///
    /// - Throws: `Fault` if the block is malformed. Later blocks of the connection cannot be decoded either.
    @inline(__always)
    package mutating func decode(
        _ piece: ByteView,
        isLast: Bool,
        in memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Fault) {
        if self.pending.isEmpty {
            let taken = try self.decodeFields(piece, &memory, take)
            self.pending.append(piece.dropFirst(taken))
        } else {
            self.pending.append(piece)
            if self.pending.count >= self.pendingNeeds { try self.decodePending(&memory, take) }
        }
        guard isLast else { return }
        guard self.pending.isEmpty else { throw Fault() }
        self.pending.free()
        self.isAtStart = true
    }

    @inline(never)
    private mutating func decodePending(
        _ memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Fault) {
        var block = ByteBuffer()
        swap(&block, &self.pending)
        block.consume(try self.decodeFields(block.view, &memory, take))
        swap(&block, &self.pending)
    }

    /// Decodes the complete fields in `bytes`.
    ///
    /// - Returns: the number of bytes decoded. The remaining bytes are an incomplete field.
    private mutating func decodeFields(
        _ bytes: ByteView,
        _ memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Fault) -> Int {
        var reader = Reader(bytes: bytes)
        while reader.offset < bytes.count {
            let start = reader.offset
            do throws(Stop) {
                try self.decodeField(&reader, &memory, take)
            } catch {
                guard case .needs(let end) = error else { throw Fault() }
                self.pendingNeeds = end - start
                return start
            }
        }
        return reader.offset
    }

    @inline(__always)
    private mutating func decodeField(
        _ reader: inout Reader,
        _ memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Stop) {
        let first = try reader.peek()
        switch first.leadingZeroBitCount {
        case 0: try self.takeIndexed(reader.integer(bits: 7), &memory, take)
        case 1: try self.takeLiteral(&reader, indexBits: 6, isIndexed: true, &memory, take)
        case 2: return try self.resize(to: reader.integer(bits: 5))
        case 3: try self.takeCredential(&reader, &memory, take)
        default: try self.takeLiteral(&reader, indexBits: 4, isIndexed: false, &memory, take)
        }
        self.isAtStart = false
    }

    /// Returns the number of bytes of the field at the start of `block` if it is a literal without indexing; otherwise
    /// 0. Such a literal does not affect later fields.
    @inline(__always)
    static func countOfPassing(_ block: ByteView) -> Int {
        guard block[0] < 0x10 else { return 0 }
        return self.countOfLiteral(block)
    }

    /// Returns the number of bytes at the start of `block` whose fields may repeat in every request. These fields are
    /// references to the tables and a credential. Only the first bytes of each field are examined.
    static func countOfRepeatable(_ block: ByteView) -> Int {
        var bytes = 0
        while bytes < block.count {
            let rest = block.dropFirst(bytes)
            var reader = Reader(bytes: rest)
            let isReference = rest[0] >= 0x80
            if isReference, (try? reader.integer(bits: 7)) == nil { break }
            let count = isReference ? reader.offset : CredentialMemo.isCredential(rest) ? self.countOfLiteral(rest) : 0
            guard count > 0 else { break }
            bytes += count
        }
        return bytes
    }

    /// Returns the number of bytes of the literal without indexing at the start of `block`; 0 if it is incomplete.
    private static func countOfLiteral(_ block: ByteView) -> Int {
        var reader = Reader(bytes: block)
        do throws(Stop) {
            if try reader.integer(bits: 4) == 0 { _ = try reader.string(bytesMax: block.count) }
            _ = try reader.string(bytesMax: block.count)
            return reader.offset
        } catch {
            return 0
        }
    }

    // MARK: The kinds of fields, RFC 7541 §6

    @inline(__always)
    private mutating func takeIndexed(
        _ index: Int,
        _ memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Stop) {
        if index > StaticTable.count {
            let index = index - StaticTable.count - 1
            guard index < self.table.count else { throw .fault }
            let entry = self.table.entry(index)
            var note = entry.note
            take(entry.name, entry.value, &note)
            if note != entry.note { self.table.setNote(note, of: index) }
        } else {
            guard index > 0 else { throw .fault }
            let entry = StaticTable.entry(index)
            take(entry.name, entry.value, &memory.staticNotes[index])
        }
    }

    /// Decodes a literal field.
    ///
    /// - Returns: the note of the field.
    @inline(__always)
    @discardableResult
    private mutating func takeLiteral(
        _ reader: inout Reader,
        indexBits: Int,
        isIndexed: Bool,
        _ memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Stop) -> UInt32 {
        let nameIndex = try reader.integer(bits: indexBits)
        memory.literal.removeAll(keepingBytesMax: Self.keptBytesMax)
        if nameIndex == 0 {
            try self.append(reader.string(bytesMax: self.literalBytesMax), to: &memory.literal)
        } else {
            memory.literal.append(try self.name(nameIndex))
        }
        let nameCount = memory.literal.count
        try self.append(reader.string(bytesMax: self.literalBytesMax - nameCount), to: &memory.literal)
        let literal = memory.literal.view
        let (name, value) = (literal.slice(0, count: nameCount), literal.dropFirst(nameCount))
        var note: UInt32 = 0
        take(name, value, &note)
        if isIndexed { self.table.insert(name: name, value: value, note: note) }
        return note
    }

    /// Decodes a never-indexed field. Clients send a credential in this form, and it is the same in every request.
    @inline(__always)
    private mutating func takeCredential(
        _ reader: inout Reader,
        _ memory: inout FieldDecoderMemory,
        _ take: (ByteView, ByteView, inout UInt32) -> Void
    ) throws(Stop) {
        let start = reader.offset
        let repeated = self.credential.codedCount(in: reader.bytes.dropFirst(start))
        guard repeated == 0 else {
            reader.offset += repeated
            return self.credential.withField(take)
        }
        let note = try self.takeLiteral(&reader, indexBits: 4, isIndexed: false, &memory, take)
        let coded = reader.bytes[start..<reader.offset]
        self.credential.remember(coded, literal: memory.literal.view, note: note)
    }

    private mutating func resize(to size: Int) throws(Stop) {
        guard self.isAtStart, size <= Self.tableBytesMax else { throw .fault }
        self.table.resize(to: size)
    }

    @inline(__always)
    private func name(_ index: Int) throws(Stop) -> ByteView {
        if index <= StaticTable.count { return StaticTable.entry(index).name }
        guard index - StaticTable.count <= self.table.count else { throw .fault }
        return self.table.entry(index - StaticTable.count - 1).name
    }

    /// Appends a string to the literal.
    @inline(__always)
    private func append(
        _ string: (bytes: ByteView, isHuffman: Bool),
        to literal: inout ByteBuffer
    ) throws(Stop) {
        if string.isHuffman {
            guard HuffmanCode.shared.decode(string.bytes, into: &literal) else { throw .fault }
        } else {
            literal.append(string.bytes)
        }
    }
}

extension FieldDecoder {
    /// Decodes the parts of a field: RFC 7541 §5.
    private struct Reader {
        let bytes: ByteView
        var offset = 0

        @inline(__always)
        func peek() throws(Stop) -> UInt8 {
            guard self.offset < self.bytes.count else { throw .needs(self.offset + 1) }
            return self.bytes[self.offset]
        }

        /// Decodes an integer that begins in the lowest `bits` bits of the next byte.
        @inline(__always)
        mutating func integer(bits: Int) throws(Stop) -> Int {
            let prefixMax = 1 << bits - 1
            let prefix = Int(try self.peek()) & prefixMax
            self.offset += 1
            return prefix < prefixMax ? prefix : try self.longInteger(from: prefix)
        }

        private mutating func longInteger(from prefix: Int) throws(Stop) -> Int {
            var value = prefix
            // A valid number needs at most two further bytes here. Up to five are accepted, because the format allows
            // padding.
            for shift in stride(from: 0, to: 35, by: 7) {
                let byte = try self.peek()
                self.offset += 1
                value += Int(byte & 0x7F) << shift
                if byte < 0x80 { return value }
            }
            throw .fault
        }

        /// Returns a string in its coded form.
        @inline(__always)
        mutating func string(bytesMax: Int) throws(Stop) -> (bytes: ByteView, isHuffman: Bool) {
            let isHuffman = try self.peek() >= 0x80
            let count = try self.integer(bits: 7)
            guard count <= bytesMax else { throw .fault }
            guard count <= self.bytes.count - self.offset else { throw .needs(self.offset + count) }
            defer { self.offset += count }
            return (self.bytes.slice(self.offset, count: count), isHuffman)
        }
    }
}

/// The last `authorization` field that was sent as never indexed, which marks a secret: its coded bytes and its decoded
/// value. Clients send it with every push, and it is the same as long as a provider's token is valid.
@safe
struct CredentialMemo: ~Copyable {
    /// The first bytes of a never-indexed literal whose name is entry 23 of the static table.
    private static let beginning: (UInt8, UInt8) = (0x1F, 23 - 15)
    private static var name: ByteView { ByteView("authorization") }
    /// The maximum size of a remembered field in bytes; a larger field is decoded each time. Credentials usually have
    /// 200 to 2,000 bytes.
    private static let codedBytesMax = 4096

    /// The coded bytes of the field, followed by its value.
    private var bytes = ByteBuffer()
    private var codedCount = 0
    private var note: UInt32 = 0

    /// Returns the size of the remembered field if `bytes` begins with it; otherwise 0.
    @inline(__always)
    func codedCount(in bytes: ByteView) -> Int {
        let count = self.codedCount
        guard count > 0, bytes.count >= count else { return 0 }
        return bytes.slice(0, count: count) == self.bytes.view.slice(0, count: count) ? count : 0
    }

    @inline(__always)
    mutating func withField(_ take: (ByteView, ByteView, inout UInt32) -> Void) {
        take(Self.name, self.bytes.view.dropFirst(self.codedCount), &self.note)
    }

    /// Returns true if a coded field begins like a credential.
    static func isCredential(_ coded: ByteView) -> Bool {
        coded.count > 1 && coded[0] == Self.beginning.0 && coded[1] == Self.beginning.1
    }

    /// Remembers a never-indexed field if it is a credential.
    ///
    /// - Parameters:
    ///   - coded: the coded bytes of the field.
    ///   - literal: the decoded name, followed by the decoded value.
    ///   - note: the note of the field.
    mutating func remember(_ coded: ByteView, literal: ByteView, note: UInt32) {
        guard coded.count <= Self.codedBytesMax, Self.isCredential(coded) else { return }
        self.bytes.removeAll()
        self.bytes.append(coded, literal.dropFirst(Self.name.count))
        self.codedCount = coded.count
        self.note = note
    }
}

/// Encodes field blocks that refer only to the static table, so that connections need no state for encoding.
///
/// Huffman coding is not used. It would make the answer to a push ten bytes shorter, but libnghttp2 needs a twelfth of
/// the push's time for it.
enum FieldEncoder {
    /// A literal without indexing: RFC 7541 §6.2.2.
    private static let literal: UInt8 = 0
    private static let literalStatus: UInt8 = 8

    /// The maximum number of bytes of a value whose length fits in one byte.
    private static let shortCountMax = 0x7E

    /// Appends a field whose name and value are literals.
    @inline(__always)
    static func append(_ name: ByteView, _ value: ByteView, to block: inout ByteBuffer) {
        self.append(name: name, to: &block)
        self.append(count: value.count, to: &block)
        block.append(value)
    }

    /// Appends a field whose value `write` appends. The value must be at most `shortCountMax` bytes.
    @inline(__always)
    static func append(_ name: ByteView, to block: inout ByteBuffer, _ write: (inout ByteBuffer) -> Void) {
        self.append(name: name, to: &block)
        let start = block.count
        block.append(0)
        write(&block)
        let count = block.count - start - 1
        precondition(count <= self.shortCountMax, "a value is written in place that has a short length")
        block.overwrite(memoryOf: UInt8(truncatingIfNeeded: count), at: start)
    }

    @inline(__always)
    private static func append(name: ByteView, to block: inout ByteBuffer) {
        block.append(self.literal)
        self.append(count: name.count, to: &block)
        block.append(name)
    }

    /// Appends `:status`, the first field of a response.
    static func append(status: Int, to block: inout ByteBuffer) {
        let index: UInt8? =
            switch status {
            case 200: 8
            case 204: 9
            case 400: 12
            case 404: 13
            case 500: 14
            default: nil
            }
        if let index { return block.append(0x80 | index) }
        block.append(Self.literalStatus)
        block.append(3)
        block.appendDecimal(Int64(status))
    }

    /// Appends the length of a string without Huffman coding: seven bits, and further bytes if needed (RFC 7541 §5).
    @inline(__always)
    private static func append(count: Int, to block: inout ByteBuffer) {
        guard count >= 0x7F else { return block.append(UInt8(truncatingIfNeeded: count)) }
        block.append(0x7F)
        var rest = count - 0x7F
        while rest >= 0x80 {
            block.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        block.append(UInt8(rest))
    }

    /// Calls `body` with the name and the value of each field in a block that `append` has written. Both are valid only
    /// during the call.
    static func forEachField(of block: ByteView, _ body: (ByteView, ByteView) -> Void) {
        var rest = block
        func takeString() -> ByteView {
            var (count, prefix) = (Int(rest[0]), 1)
            if count == 0x7F {
                var shift = 0
                repeat {
                    count += Int(rest[prefix] & 0x7F) << shift
                    shift += 7
                    prefix += 1
                } while rest[prefix - 1] >= 0x80
            }
            defer { rest = rest.dropFirst(prefix + count) }
            return rest.slice(prefix, count: count)
        }
        while !rest.isEmpty {
            rest = rest.dropFirst(1)
            let name = takeString()
            body(name, takeString())
        }
    }
}
