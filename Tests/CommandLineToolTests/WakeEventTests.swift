import CommandLineTool
import HTTPClient
import Testing

@Suite("Wakes as a worker reads them")
struct WakeEventTests {
    @Test(
        "A payload reaches the command byte for byte",
        arguments: [
            "{\"aps\":{\"content-available\":1}}",
            "{ \"n\" : 1.000e999, \"s\":\"\\ud800 } ] \\\" , \" , \"a\":[1,{}] }",
            "{}", "{\"payload\":{\"wake\":\"forged\"}}",
        ]
    )
    func payload(text: String) throws {
        let data =
            "{\"wake\":\"w\\u0031\",\"device\":\"ab\",\"topic\":\"t\",\"attempt\":2,\"coalesced\":3,\n\"deadline\":99,"
        let wake = try #require(WakeEvent(Array("\(data)\"payload\":\(text)}".utf8)))
        #expect(String(decoding: wake.payload, as: UTF8.self) == text)
        #expect(
            wake.environment == [
                "WAKEGATE_WAKE": "w1", "WAKEGATE_DEVICE": "ab", "WAKEGATE_TOPIC": "t", "WAKEGATE_ATTEMPT": "2",
                "WAKEGATE_COALESCED": "3", "WAKEGATE_DEADLINE": "99",
            ]
        )
    }

    @Test(
        "Text that is no wake is refused",
        arguments: [
            "", "[]", "{", "{\"wake\"", "{\"wake\":", "{\"wake\":\"a", "{\"wake\":\"a\"}", "{\"wake\":\"a\\",
            "{\"a\":[1}", "{,}",
        ]
    )
    func refused(text: String) {
        #expect(WakeEvent(Array(text.utf8)) == nil)
    }

    @Test(
        "Exit statuses are results",
        arguments: [
            (0, .newData), (3, .noData), (1, .failed), (127, .failed), (nil, .failed),
        ] as [(Int32?, WakeResult)]
    )
    func results(status: Int32?, result: WakeResult) {
        #expect(WakeResult(exitStatus: status) == result)
    }

    @Test("Waits double up to the bound, and begin again after a success")
    func backoff() {
        var generator = SystemRandomNumberGenerator()
        var backoff = Backoff(firstMilliseconds: 100, lastMilliseconds: 1000)
        for bound in [100, 200, 400, 800, 1000, 1000] {
            #expect((bound / 2...bound).contains(backoff.failed(using: &generator)))
        }
        backoff.succeeded()
        #expect((50...100).contains(backoff.failed(using: &generator)))
    }
}
