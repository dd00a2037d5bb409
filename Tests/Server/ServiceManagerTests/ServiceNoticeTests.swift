import ServiceManager
import Testing

@Suite("Notices to the service manager")
struct ServiceNoticeTests {
    @Test(
        "Each notice is the assignments that sd_notify knows, to which a text cannot add others",
        arguments: [
            (ServiceNotice.ready("Takes pushes"), "READY=1\nSTATUS=Takes pushes"),
            (.reloading("Reads", monotonicMicroseconds: 7), "RELOADING=1\nMONOTONIC_USEC=7\nSTATUS=Reads"),
            (.status("Waits"), "STATUS=Waits"), (.status("a\nMAINPID=1\r\nb"), "STATUS=a MAINPID=1 b"),
            (.alive, "WATCHDOG=1"),
            // A stop may take the announced time, plus a margin.
            (.stopping("Drains", milliseconds: 600_000), "STOPPING=1\nEXTEND_TIMEOUT_USEC=615000000\nSTATUS=Drains"),
        ]
    )
    func texts(notice: ServiceNotice, text: String) {
        #expect(notice.text == text)
    }
}
