package import Bytes

/// The head of a response: made once, filled anew for every answer.
@safe
package final class Response {
    /// A field whose name is a constant; its value is a constant too, or stands in `values`.
    @safe
    struct Field {
        let name: ByteView
        let constant: UnsafePointer<UInt8>?
        let valueStart: Int
        let valueCount: Int
    }

    /// The most fields a response may have, its status included; a programming error beyond.
    static let fieldsMax = 64

    private(set) var status = 200
    private(set) var fieldCount = 0
    private let fields = UnsafeMutablePointer<Field>.allocate(capacity: Response.fieldsMax)
    private var values = ByteBuffer()

    package init() {
        self.begin(status: 200)
    }

    deinit {
        unsafe self.fields.deallocate()
    }

    /// Forgets every field and starts over with `status` (200...999).
    package func begin(status: Int) {
        precondition(status >= 200 && status <= 999, "a final status has three digits")
        self.status = status
        self.fieldCount = 0
        self.values.removeAll()
        self.values.appendDecimal(Int64(status))
        unsafe self.append(":status", constant: nil, valueStart: 0, valueCount: 3)
    }

    /// Adds a field; the value is copied.
    ///
    /// - `name`: the name, in lower case.
    package func add(_ name: StaticString, _ value: ByteView) {
        let start = self.values.count
        self.values.append(value)
        unsafe self.append(name, constant: nil, valueStart: start, valueCount: value.count)
    }

    package func add(_ name: StaticString, _ value: StaticString) {
        unsafe self.append(name, constant: value.utf8Start, valueStart: 0, valueCount: value.utf8CodeUnitCount)
    }

    /// Adds a field whose value `write` appends.
    package func add(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        let start = self.values.count
        write(&self.values)
        unsafe self.append(name, constant: nil, valueStart: start, valueCount: self.values.count - start)
    }

    /// Adds a field whose value is a decimal number.
    package func add(_ name: StaticString, _ value: Int64) {
        let start = self.values.count
        self.values.appendDecimal(value)
        unsafe self.append(name, constant: nil, valueStart: start, valueCount: self.values.count - start)
    }

    /// The field at `index`; the first is `:status`.
    func field(at index: Int) -> Field {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: self.fieldCount), "field index out of range")
        return unsafe self.fields[index]
    }

    /// The value of a field of this response; valid until the response is next changed.
    func value(of field: Field) -> ByteView {
        if let constant = unsafe field.constant {
            return unsafe ByteView(UnsafeRawBufferPointer(start: constant, count: field.valueCount))
        }
        return self.values.view[field.valueStart..<field.valueStart + field.valueCount]
    }

    private func append(
        _ name: StaticString,
        constant: UnsafePointer<UInt8>?,
        valueStart: Int,
        valueCount: Int
    ) {
        precondition(self.fieldCount < Response.fieldsMax, "too many response fields")
        let field = unsafe Field(
            name: ByteView(name),
            constant: constant,
            valueStart: valueStart,
            valueCount: valueCount
        )
        unsafe (self.fields + self.fieldCount).initialize(to: field)
        self.fieldCount += 1
    }
}
