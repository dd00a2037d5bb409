package import Wire

/// Values in binary, one after another in one buffer: the parameters of a statement, or the elements of an array.
package protocol PostgresValues: ~Copyable {
    var buffer: ByteBuffer { get set }

    /// Begins a value of so many bytes.
    mutating func begin(_ count: Int)
}

extension PostgresValues where Self: ~Copyable {
    package mutating func append(_ value: Bool) {
        self.begin(1)
        self.buffer.append(value ? 1 : 0)
    }

    package mutating func append(_ value: Int16) { self.append(integer: value) }

    package mutating func append(_ value: Int32) { self.append(integer: value) }

    package mutating func append(_ value: Int64) { self.append(integer: value) }

    package mutating func append(_ bytes: ByteView) {
        self.begin(bytes.count)
        self.buffer.append(bytes)
    }

    package mutating func append(_ bytes: [UInt8]) {
        self.begin(bytes.count)
        self.buffer.append(bytes)
    }

    /// Appends text. PostgreSQL's text holds no NUL: a statement with one fails.
    package mutating func append(_ text: String) {
        self.begin(text.utf8.count)
        self.buffer.append(text)
    }

    package mutating func append(_ token: DeviceToken) {
        self.begin(token.count)
        token.withBytes { bytes in self.buffer.append(bytes) }
    }

    /// Appends a wake's id as a uuid.
    package mutating func append(_ id: WakeID) { self.append(uuid: (id.first, id.second)) }

    /// Appends a uuid: its first eight bytes and its last, the first byte highest.
    package mutating func append(uuid: (UInt64, UInt64)) {
        self.begin(16)
        self.buffer.append(memoryOf: uuid.0.bigEndian)
        self.buffer.append(memoryOf: uuid.1.bigEndian)
    }

    private mutating func append<Value: FixedWidthInteger & BitwiseCopyable>(integer value: Value) {
        self.begin(MemoryLayout<Value>.size)
        self.buffer.append(memoryOf: value.bigEndian)
    }
}

/// The parameters of one statement, in their order and in binary, in one buffer that is kept when it is emptied.
package struct PostgresParameters: PostgresValues, ~Copyable {
    /// Where a parameter lies in the buffer.
    struct Place {
        let offset: Int
        /// -1 for NULL.
        let count: Int
    }

    private(set) var places: [Place] = []
    package var buffer = ByteBuffer()

    package init() { self.appendMark() }

    package var count: Int { self.places.count }

    /// The bytes of all, one after the other, behind one that is nobody's.
    var bytes: ByteView { self.buffer.view }

    /// Drops every parameter and keeps the memory.
    package mutating func removeAll() {
        self.places.removeAll(keepingCapacity: true)
        self.buffer.removeAll()
        self.appendMark()
    }

    package mutating func append(_ array: borrowing PostgresArray) { self.append(array.view) }

    package mutating func append(_ texts: [String]) {
        var array = PostgresArray(.text)
        for text in texts { array.append(text) }
        self.append(array)
    }

    package mutating func append(_ tokens: [DeviceToken]) {
        var array = PostgresArray(.bytes)
        for token in tokens { array.append(token) }
        self.append(array)
    }

    package mutating func appendNull() {
        self.places.append(Place(offset: self.buffer.count, count: -1))
    }

    /// Appends a byte of no parameter: by its address libpq tells a value of no bytes from NULL.
    private mutating func appendMark() { self.buffer.append(0) }

    package mutating func begin(_ count: Int) {
        self.places.append(Place(offset: self.buffer.count, count: count))
    }
}

/// An array of one dimension as PostgreSQL reads it in binary, in one buffer that is kept when it is emptied.
///
/// Its form: dimensions (4 bytes), whether there are nulls (4), the type of the elements (4), their count (4), the
/// first index (4), then each element behind its length (4), all big-endian.
package struct PostgresArray: PostgresValues, ~Copyable {
    private static let flagOffset = 4
    private static let countOffset = 12

    package let element: PostgresElement
    package private(set) var count = 0
    package var buffer = ByteBuffer()

    package init(_ element: PostgresElement) {
        self.element = element
        self.appendHeader()
    }

    /// The whole array; valid until it is next changed.
    package var view: ByteView { self.buffer.view }

    /// Drops every element and keeps the memory.
    package mutating func removeAll() {
        self.buffer.removeAll()
        self.count = 0
        self.appendHeader()
    }

    package mutating func append(_ place: PostgresPlace) {
        self.begin(6)
        self.buffer.append(memoryOf: place.block.bigEndian)
        self.buffer.append(memoryOf: place.offset.bigEndian)
    }

    package mutating func appendNull() {
        self.buffer.overwrite(memoryOf: UInt32(1).bigEndian, at: Self.flagOffset)
        self.begin(-1)
    }

    /// Begins an element of so many bytes; -1 for NULL.
    package mutating func begin(_ bytes: Int) {
        self.count += 1
        self.buffer.overwrite(memoryOf: UInt32(self.count).bigEndian, at: Self.countOffset)
        self.buffer.append(memoryOf: Int32(bytes).bigEndian)
    }

    private mutating func appendHeader() {
        self.buffer.append(memoryOf: UInt32(1).bigEndian)
        self.buffer.append(memoryOf: UInt32(0).bigEndian)
        self.buffer.append(memoryOf: self.element.rawValue.bigEndian)
        self.buffer.append(memoryOf: UInt32(0).bigEndian)
        self.buffer.append(memoryOf: UInt32(1).bigEndian)
    }
}

/// The types that an array may be of, by PostgreSQL's numbers for them.
package enum PostgresElement: UInt32, CaseIterable, Sendable {
    case bool = 16
    case bytes = 17
    case int8 = 20
    case int2 = 21
    case int4 = 23
    case text = 25
    case place = 27
    case uuid = 2950
}
