import CommandLineTool
import Testing
import Wire

@Suite("wakegate doctor", .timeLimit(.minutes(15)))
struct DoctorTests {
    @Test("A diagnosis is requested for a device, or for a task of it")
    func path() throws {
        #expect(try DoctorCommand.path(.running("doctor ab")) == "/v1/devices/ab/diagnosis")
        let path = try DoctorCommand.path(.running("doctor ab com.example.refresh"))
        #expect(path == "/v1/devices/ab/diagnosis?task=com.example.refresh")
        #expect(throws: CommandFailure.self) { try ParsedCommand.running("doctor") }
    }

    @Test("Each check has a line, with its remedy below it")
    func text() throws {
        let diagnosis = try JSONReader.read(
            """
            {"device":"ab","topic":"t","task":null,"verdict":"held","eligibleAt":null,"checks":[
             {"check":"registered","ok":true,"detail":"It is.","remedy":null},
             {"check":"hold:network","ok":false,"detail":"The device has no\\u001b network.","remedy":"wakegate x"},
             {"check":"penalty","ok":false,"detail":"Doubled.","remedy":null}]}
            """
        )
        #expect(
            DoctorCommand.text(diagnosis) == """
                a push of priority 5 to ab of t is held back

                ok      registered    It is.
                not ok  hold:network  The device has no? network.
                                      wakegate x
                not ok  penalty       Doubled.

                """
        )
        #expect(DoctorCommand.status(diagnosis) == 1)
    }

    @Test(
        "The verdict is a clause and an exit status",
        arguments: [
            (#""verdict":"ready","eligibleAt":null"#, "would launch now", 0),
            (#""verdict":"waiting","eligibleAt":901000"#, "waits until 1970-01-01T00:15:01Z", 0),
            (#""verdict":"inFlight","eligibleAt":901000"#, "waits for what is in flight", 0),
            (
                #""verdict":"waiting","eligibleAt":901000,"checks":[{"check":"slots","ok":false}]"#,
                "waits until 1970-01-01T00:15:01Z", 0
            ),
            (
                #""verdict":"waiting","eligibleAt":901000,"checks":[{"check":"handler","ok":false}]"#,
                "waits until 1970-01-01T00:15:01Z, and no worker of this gateway takes a.b", 1
            ),
            (#""verdict":"held","eligibleAt":null"#, "is held back", 1),
            (#""verdict":"unregistered","eligibleAt":null"#, "would be refused", 1),
        ]
    )
    func verdict(members: String, words: String, status: Int32) throws {
        let diagnosis = try JSONReader.read(#"{"device":"ab","topic":"t","task":"a.b",\#(members)}"#)
        #expect(DoctorCommand.text(diagnosis).hasPrefix("a.b to ab of t \(words)\n\n"))
        #expect(DoctorCommand.status(diagnosis) == status)
    }
}
