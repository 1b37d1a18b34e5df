// Echo is the service of the nodes of bench/switch. On UDP and TCP it answers with a token that is
// new at each start, so that a client can tell the instances of a node apart. If it is given the
// client's address, it also sends packets there all the time, whether or not it can reach the
// client. Real services do the same with others outside of their set.
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
	end := make(chan os.Signal, 1) // as process 1 it only gets signals that it has requested
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
			defer c.Close() //nolint:errcheck // the error has no consequence
			_, _ = c.Write(token)
			_, _ = io.Copy(io.Discard, c) // the client closes first
		}()
	}
}
