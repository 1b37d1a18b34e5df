// Echo is the service of the nodes of bench/switch: it answers, on UDP and TCP, with a token that
// each start of it has of its own, so that a client sees which instance of a node answers. Given
// the client's address, it calls there all the time, in vain as long as it cannot reach it, as
// services call others that are not of their set.
package main

import (
	"crypto/rand"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const port = ":7007"

func main() {
	token := make([]byte, 8)
	rand.Read(token)
	udp, err := net.ListenPacket("udp4", port)
	if err != nil {
		log.Fatal(err)
	}
	tcp, err := net.Listen("tcp4", port)
	if err != nil {
		log.Fatal(err)
	}
	go datagrams(udp, token)
	go connections(tcp, token)
	for _, address := range os.Args[1:] {
		go call(address)
	}
	end := make(chan os.Signal, 1) // a process with id 1 has to ask for it
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}

func datagrams(udp net.PacketConn, token []byte) {
	for buffer := make([]byte, 64); ; {
		n, from, err := udp.ReadFrom(buffer)
		if err != nil {
			continue
		}
		copy(buffer, token)
		_, _ = udp.WriteTo(buffer[:max(n, len(token))], from)
	}
}

func call(address string) {
	for range time.Tick(200 * time.Millisecond) {
		if c, err := net.Dial("udp4", net.JoinHostPort(address, "9")); err == nil {
			_, _ = c.Write([]byte{0})
			_ = c.Close()
		}
	}
}

func connections(tcp net.Listener, token []byte) {
	for {
		c, err := tcp.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer c.Close() //nolint:errcheck // nobody needs to know
			_, _ = c.Write(token)
			_, _ = io.Copy(io.Discard, c) // the client goes first
		}()
	}
}
