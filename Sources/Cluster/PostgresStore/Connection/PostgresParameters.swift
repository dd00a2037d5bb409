package import Wire

/// Consecutive binary values in one buffer: the parameters of a statement, or the elements of an array.
package protocol PostgresValues: ~Copyable {
    var buffer: ByteBuffer { get set }

    /// Begins a value of `count` bytes.
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

    /// Appends text. PostgreSQL rejects text that contains NUL.
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

    /// Appends a uuid given as two big-endian words.
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

/// The binary parameters of one statement, in order.
package struct PostgresParameters: PostgresValues, ~Copyable {
    /// The position of a parameter in the buffer.
    struct Place {
        let offset: Int
        /// -1 for NULL.
        let count: Int
    }

    private(set) var places: [Place] = []
    package var buffer = ByteBuffer()

    package init() { self.appendMark() }

    package var count: Int { self.places.count }

    /// The bytes of all parameters, after one unused byte.
    var bytes: ByteView { self.buffer.view }

    /// Removes every parameter and keeps the memory.
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

    /// Appends an unused byte, so that every value has an address: libpq treats a null address as NULL.
    private mutating func appendMark() { self.buffer.append(0) }

    package mutating func begin(_ count: Int) {
        self.places.append(Place(offset: self.buffer.count, count: count))
    }
}

/// A one-dimensional array in PostgreSQL's binary format.
///
/// The format: the number of dimensions (4 bytes), a flag for nulls (4), the type of the elements (4), their count (4),
/// the first index (4), then each element after its length (4), all big-endian.
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

    /// The whole array; valid until it changes.
    package var view: ByteView { self.buffer.view }

    /// Removes every element and keeps the memory.
    package mutating func removeAll() {
        self.buffer.removeAll()
        self.count = 0
        self.appendHeader()
    }

    package mutating func append(_ place: RowLocation) {
        self.begin(6)
        self.buffer.append(memoryOf: place.block.bigEndian)
        self.buffer.append(memoryOf: place.offset.bigEndian)
    }

    package mutating func appendNull() {
        self.buffer.overwrite(memoryOf: UInt32(1).bigEndian, at: Self.flagOffset)
        self.begin(-1)
    }

    /// Begins an element of `bytes` bytes; -1 for NULL.
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

/// The element types of arrays, by PostgreSQL's type ids.
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
