internal import Bytes

/// What the session tells its peer of itself, and asks of it.
extension HTTP2Session {
    /// - Parameter seconds: the time from one PING to the next; nil for none.
    package func setPing(everySeconds seconds: Int?) {
        self.ping.set(everySeconds: seconds, now: self.core.now)
    }

    /// libnghttp2 ends the connection for one stream too many; RFC 9113 §5.1.2 also allows to refuse that stream, which
    /// clients retry. So it is told of twice as many, always, and the number is put right in the frames that leave.
    var streamsToldToLibrary: Int { self.core.limits.streamsPerConnectionMax * 2 }

    /// Every SETTINGS frame of ours begins with a setting whose value is `streamsToldToLibrary`, but for the first.
    func appendSettings(_ frame: UnsafeRawBufferPointer, to output: inout ByteBuffer) {
        let room = unsafe output.reserve(frame.count)
        unsafe room.copyMemory(from: frame)
        // SETTINGS is 4, and has no flag but that of an answer.
        let isOurs = unsafe frame[3] == 4 && frame[4] == 0
        if isOurs, let limit = self.streamLimit.sent(now: self.core.now) {
            // The first frame has the size of the header table before it.
            let valueStart = 9 + (frame.count > 9 + 6 ? 6 : 0) + 2
            unsafe room.storeBytes(of: UInt32(limit).bigEndian, toByteOffset: valueStart, as: UInt32.self)
        }
        output.commit(frame.count)
    }
}
