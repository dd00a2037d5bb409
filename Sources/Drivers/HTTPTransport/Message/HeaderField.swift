/// Where a header field stands in the bytes of its request.
@usableFromInline
struct HeaderField {
    @usableFromInline var nameStart: UInt32
    @usableFromInline var nameCount: UInt32
    @usableFromInline var valueStart: UInt32
    @usableFromInline var valueCount: UInt32

    init(nameStart: Int, nameCount: Int, valueStart: Int, valueCount: Int) {
        self.nameStart = UInt32(truncatingIfNeeded: nameStart)
        self.nameCount = UInt32(truncatingIfNeeded: nameCount)
        self.valueStart = UInt32(truncatingIfNeeded: valueStart)
        self.valueCount = UInt32(truncatingIfNeeded: valueCount)
    }

    /// The field that is not there: a value of no bytes.
    static var none: HeaderField { HeaderField(nameStart: 0, nameCount: 0, valueStart: 0, valueCount: 0) }
}
