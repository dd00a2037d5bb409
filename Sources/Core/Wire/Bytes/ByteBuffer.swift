/// A growable byte buffer with one owner: bytes are appended at the end and consumed at the front.
///
/// An emptied buffer keeps its capacity, so a reused buffer does not allocate.
@safe
@usableFromInline
package struct ByteBuffer: ~Copyable {
    @usableFromInline
    var base: UnsafeMutableRawPointer?
    @usableFromInline
    var capacity: Int
    @usableFromInline
    var start: Int
    @usableFromInline
    var end: Int

    /// Creates an empty buffer. The first byte allocates memory.
    @inlinable
    package init() {
        unsafe self.base = nil
        self.capacity = 0
        self.start = 0
        self.end = 0
    }

    deinit {
        unsafe self.base?.deallocate()
    }

    /// The number of bytes appended and not yet consumed.
    @inlinable
    package var count: Int { self.end - self.start }

    @inlinable
    package var isEmpty: Bool { self.end == self.start }

    /// The appended bytes that are not yet consumed; valid until the next change of the buffer.
    @inlinable
    package var view: ByteView {
        unsafe ByteView(UnsafeRawBufferPointer(start: self.base.map { unsafe $0 + self.start }, count: self.count))
    }

    /// Returns free memory of at least `count` bytes at the end of the buffer. The caller fills it and then calls
    /// `commit`.
    @inlinable
    package mutating func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
        if self.capacity - self.end < count { self.grow(count) }
        return unsafe UnsafeMutableRawBufferPointer(
            start: self.base.map { unsafe $0 + self.end },
            count: self.capacity - self.end
        )
    }

    /// Ensures that `count` more bytes fit without another allocation.
    @inlinable
    package mutating func makeRoom(_ count: Int) {
        if self.capacity - self.end < count { self.grow(count) }
    }

    /// Appends `count` bytes, at least one, and returns their memory. The caller must fill all of it.
    @inlinable
    @inline(__always)
    mutating func extend(_ count: Int) -> UnsafeMutableRawPointer {
        if self.capacity - self.end < count { self.grow(count) }
        defer { self.end += count }
        return unsafe self.base.unsafelyUnwrapped + self.end
    }

    /// Appends the first `count` bytes of the memory that `reserve` returned.
    @inlinable
    package mutating func commit(_ count: Int) {
        precondition(count >= 0 && count <= self.capacity - self.end, "more bytes than were reserved")
        self.end += count
    }

    @usableFromInline
    @inline(never)
    mutating func grow(_ count: Int) {
        let held = self.count
        if held + count <= self.capacity, self.start >= held {
            unsafe self.base?.copyMemory(from: self.base.unsafelyUnwrapped + self.start, byteCount: held)
        } else {
            let capacity = max(256, self.capacity * 2, held + count)
            let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
            if let base = unsafe self.base {
                unsafe grown.copyMemory(from: base + self.start, byteCount: held)
                unsafe base.deallocate()
            }
            unsafe self.base = grown
            self.capacity = capacity
        }
        self.start = 0
        self.end = held
    }

    @inlinable
    package mutating func append(_ byte: UInt8) {
        unsafe self.extend(1).storeBytes(of: byte, as: UInt8.self)
    }

    @inlinable
    @inline(__always)
    package mutating func append(_ bytes: ByteView) {
        guard bytes.count > 0 else { return }
        unsafe bytes.copy(to: self.extend(bytes.count))
    }

    /// Appends both views, one after the other.
    @inlinable
    package mutating func append(_ first: ByteView, _ second: ByteView) {
        guard first.count + second.count > 0 else { return }
        let room = unsafe self.extend(first.count + second.count)
        unsafe first.copy(to: room)
        unsafe second.copy(to: room + first.count)
    }

    @inlinable
    package mutating func append(_ constant: StaticString) {
        self.append(ByteView(constant))
    }

    package mutating func append(_ bytes: [UInt8]) {
        bytes.withByteView { self.append($0) }
    }

    /// Appends a string that is not a literal.
    @_disfavoredOverload
    package mutating func append(_ text: String) {
        text.withByteView { self.append($0) }
    }

    /// Appends the key of a JSON member: a comma if `hasComma` is true, the quoted name, and a colon. The name must
    /// need no escaping.
    mutating func append(key name: ByteView, afterComma hasComma: Bool) {
        let start = hasComma ? 1 : 0
        let room = unsafe self.extend(start + name.count + 3)
        // The quotation mark overwrites the comma if `hasComma` is false.
        unsafe room.storeBytes(of: UInt8(ascii: ","), as: UInt8.self)
        unsafe room.storeBytes(of: UInt8(ascii: "\""), toByteOffset: start, as: UInt8.self)
        unsafe name.copy(to: room + start + 1)
        unsafe room.storeBytes(of: UInt8(ascii: "\""), toByteOffset: start + 1 + name.count, as: UInt8.self)
        unsafe room.storeBytes(of: UInt8(ascii: ":"), toByteOffset: start + 2 + name.count, as: UInt8.self)
    }

    /// Appends the memory of `value`. `ByteView.load` reads it in the same process.
    @inlinable
    package mutating func append<Value: BitwiseCopyable>(memoryOf value: Value) {
        unsafe self.extend(MemoryLayout<Value>.size).storeBytes(of: value, as: Value.self)
    }

    /// Overwrites the bytes from `offset` with the memory of `value`. The bytes must already be in the buffer.
    @inlinable
    package mutating func overwrite<Value: BitwiseCopyable>(memoryOf value: Value, at offset: Int) {
        precondition(offset >= 0 && offset + MemoryLayout<Value>.size <= self.count, "no such bytes")
        unsafe self.base.unsafelyUnwrapped.storeBytes(of: value, toByteOffset: self.start + offset, as: Value.self)
    }

    /// Appends `value` in decimal.
    @inlinable
    package mutating func appendDecimal(_ value: Int64) {
        if value < 0 { self.append(UInt8(ascii: "-")) }
        var rest = value.magnitude
        var count = 1
        var bound: UInt64 = 10
        while rest >= bound {
            count += 1
            bound *= 10
        }
        let room = unsafe self.extend(count)
        var place = count
        while place >= 2 {
            let pair = UInt16(truncatingIfNeeded: rest % 100)
            let digits = (pair / 10 | (pair % 10) << 8) &+ 0x3030
            rest /= 100
            place -= 2
            unsafe room.storeBytes(of: digits.littleEndian, toByteOffset: place, as: UInt16.self)
        }
        if place == 1 { unsafe room.storeBytes(of: UInt8(truncatingIfNeeded: rest) &+ 0x30, as: UInt8.self) }
    }

    /// Removes the first `count` bytes.
    @inlinable
    package mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more bytes than there are")
        self.start += count
        if self.start == self.end { self.removeAll() }
    }

    /// Removes every byte and keeps the capacity.
    @inlinable
    package mutating func removeAll() {
        self.start = 0
        self.end = 0
    }

    /// Removes every byte, and frees the memory if it is larger than `bytesMax`.
    @inlinable
    package mutating func removeAll(keepingBytesMax bytesMax: Int) {
        if self.capacity > bytesMax { self.free() } else { self.removeAll() }
    }

    /// Removes every byte and frees the memory.
    @usableFromInline
    package mutating func free() {
        unsafe self.base?.deallocate()
        unsafe self.base = nil
        self.capacity = 0
        self.removeAll()
    }
}

extension ByteView {
    /// Copies the bytes to `room`. Copies up to 32 bytes, such as most header fields, without a call.
    @inlinable
    @inline(__always)
    func copy(to room: UnsafeMutableRawPointer) {
        guard self.count > 0 else { return }
        let source = unsafe self.base.unsafelyUnwrapped
        switch self.count {
        case 4..<8: unsafe self.copyEnds(UInt32.self, from: source, to: room)
        case 8...16: unsafe self.copyEnds(UInt64.self, from: source, to: room)
        case 17...32: unsafe self.copyEnds(SIMD16<UInt8>.self, from: source, to: room)
        default: unsafe room.copyMemory(from: source, byteCount: self.count)
        }
    }

    /// Copies the first and the last `Word` of the bytes. They may overlap, and together they cover all bytes.
    @inlinable
    @inline(__always)
    func copyEnds<Word: BitwiseCopyable>(
        _: Word.Type,
        from source: UnsafeRawPointer,
        to room: UnsafeMutableRawPointer
    ) {
        let last = self.count - MemoryLayout<Word>.size
        let (head, tail) = unsafe (
            source.loadUnaligned(as: Word.self), source.loadUnaligned(fromByteOffset: last, as: Word.self)
        )
        unsafe room.storeBytes(of: head, as: Word.self)
        unsafe room.storeBytes(of: tail, toByteOffset: last, as: Word.self)
    }
}
