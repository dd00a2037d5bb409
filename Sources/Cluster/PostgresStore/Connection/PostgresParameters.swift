package import Engine
package import Wire

/// A parameter of a statement.
package protocol PostgresValue {
    /// Appends the value in PostgreSQL's binary format.
    func writeBinary(to buffer: inout ByteBuffer)
}

/// A value that may be an element of an array.
package protocol PostgresScalar: PostgresValue {
    /// PostgreSQL's type id of the value.
    static var typeID: UInt32 { get }
}

extension PostgresScalar where Self: FixedWidthInteger & BitwiseCopyable {
    package func writeBinary(to buffer: inout ByteBuffer) { buffer.append(memoryOf: self.bigEndian) }
}

extension Int16: PostgresScalar { package static var typeID: UInt32 { 21 } }
extension Int32: PostgresScalar { package static var typeID: UInt32 { 23 } }
extension Int64: PostgresScalar { package static var typeID: UInt32 { 20 } }

extension Bool: PostgresValue {
    package func writeBinary(to buffer: inout ByteBuffer) { buffer.append(self ? 1 : 0) }
}

/// Text. PostgreSQL rejects text that contains NUL.
extension String: PostgresScalar {
    package static var typeID: UInt32 { 25 }
    package func writeBinary(to buffer: inout ByteBuffer) { buffer.append(self) }
}

/// Bytes.
extension Array: PostgresValue, PostgresScalar where Element == UInt8 {
    package static var typeID: UInt32 { 17 }
    package func writeBinary(to buffer: inout ByteBuffer) { buffer.append(self) }
}

extension DeviceToken: PostgresScalar {
    package static var typeID: UInt32 { 17 }
    package func writeBinary(to buffer: inout ByteBuffer) { self.withBytes { buffer.append($0) } }
}

/// Counters in their stored format, as bytes.
extension ActivityCounters: PostgresScalar {
    package static var typeID: UInt32 { 17 }
    package func writeBinary(to buffer: inout ByteBuffer) { self.store(to: &buffer) }
}

/// The id of a wake as a uuid.
extension WakeID: PostgresScalar {
    package static var typeID: UInt32 { 2950 }

    package func writeBinary(to buffer: inout ByteBuffer) {
        buffer.append(memoryOf: self.first.bigEndian)
        buffer.append(memoryOf: self.second.bigEndian)
    }
}

/// The id of a push as a uuid. The first byte is in the lowest bits of the words.
extension APNsID: PostgresScalar {
    package static var typeID: UInt32 { 2950 }

    package func writeBinary(to buffer: inout ByteBuffer) {
        buffer.append(memoryOf: self.first.littleEndian)
        buffer.append(memoryOf: self.second.littleEndian)
    }
}

extension RowLocation: PostgresScalar {
    package static var typeID: UInt32 { 27 }

    package func writeBinary(to buffer: inout ByteBuffer) {
        buffer.append(memoryOf: self.block.bigEndian)
        buffer.append(memoryOf: self.offset.bigEndian)
    }
}

/// An array as one parameter.
package struct PostgresList<Element: PostgresScalar>: PostgresValue {
    private let elements: [Element]

    package init(_ elements: [Element]) {
        self.elements = elements
    }

    package func writeBinary(to buffer: inout ByteBuffer) { buffer.append(arrayOf: self.elements) { $0 } }
}

extension ByteBuffer {
    /// Appends a one-dimensional array in PostgreSQL's binary format.
    ///
    /// The format: the number of dimensions (4 bytes), a flag for nulls (4), the type of the elements (4), their count
    /// (4), the first index (4), then each element after its length (4), all big-endian.
    fileprivate mutating func append<Items: Collection, Value: PostgresScalar>(
        arrayOf items: Items,
        _ value: (Items.Element) -> Value
    ) {
        self.append(memoryOf: UInt32(1).bigEndian)
        self.append(memoryOf: UInt32(0).bigEndian)
        self.append(memoryOf: Value.typeID.bigEndian)
        self.append(memoryOf: UInt32(items.count).bigEndian)
        self.append(memoryOf: UInt32(1).bigEndian)
        for item in items {
            let start = self.count
            self.append(memoryOf: Int32(0))
            value(item).writeBinary(to: &self)
            self.overwrite(memoryOf: Int32(self.count - start - 4).bigEndian, at: start)
        }
    }
}

/// The binary parameters of one statement, in order.
package struct PostgresParameters: ~Copyable {
    /// The position of a parameter in the buffer.
    struct Place {
        let offset: Int
        /// -1 for NULL.
        let count: Int
    }

    private(set) var places: [Place] = []
    private var buffer = ByteBuffer()

    package init<each Value: PostgresValue>(_ values: repeat each Value) {
        // An unused byte, so that every value has an address: libpq treats a null address as NULL.
        self.buffer.append(0)
        repeat self.append(each values)
    }

    package var count: Int { self.places.count }

    /// The bytes of all parameters, after one unused byte.
    var bytes: ByteView { self.buffer.view }

    /// Appends a value; nil for NULL.
    package mutating func append(_ value: (some PostgresValue)?) {
        let offset = self.buffer.count
        value?.writeBinary(to: &self.buffer)
        self.places.append(Place(offset: offset, count: value == nil ? -1 : self.buffer.count - offset))
    }

    /// Appends an array with one element for each item.
    package mutating func append<Items: Collection, Value: PostgresScalar>(
        _ items: Items,
        _ value: (Items.Element) -> Value
    ) {
        let offset = self.buffer.count
        self.buffer.append(arrayOf: items, value)
        self.places.append(Place(offset: offset, count: self.buffer.count - offset))
    }
}
