package net

import (
	"errors"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
)

// A flow is the result of one run of iperf3.
type flow struct {
	Version     string  `json:"version"`
	Sent        float64 `json:"sent"`     // bit/s
	Received    float64 `json:"received"` // payload at the receiver, in bit/s
	Bytes       float64 `json:"bytes"`    // received
	SentBytes   float64 `json:"sent_bytes"`
	Seconds     float64 `json:"seconds"` // at the receiver
	Retransmits *int64  `json:"retransmits,omitempty"`
	Congestion  string  `json:"congestion,omitempty"`
	Jitter      float64 `json:"jitter,omitempty"` // s, RFC 1889
	// Datagrams lost by gaps in the sequence that the receiver saw. Datagrams sent after the last
	// one received are not counted.
	Lost int64 `json:"lost,omitempty"`
	CPU  cpu   `json:"cpu"`

	series []float64 // bit/s per second, at the near end

	// Socket buffers of the near end as the kernel reports them: twice the usable size.
	SendBuffer    int `json:"sndbuf,omitempty"`
	ReceiveBuffer int `json:"rcvbuf,omitempty"`
}

// cpu is the processor time of iperf3 itself at both ends, in percent of one processor.
type cpu struct {
	Near float64 `json:"host_total"`
	Far  float64 `json:"remote_total"`
}

// output is what iperf3 -J prints. After an error, `end` is empty, but the exit status may still be
// 0.
type output struct {
	Error *string `json:"error"`
	Start struct {
		Version       string `json:"version"`
		SendBuffer    int    `json:"sndbuf_actual"`
		ReceiveBuffer int    `json:"rcvbuf_actual"`
	} `json:"start"`
	Intervals []struct {
		Sum struct {
			Seconds float64 `json:"seconds"`
			Rate    float64 `json:"bits_per_second"`
			Omitted bool    `json:"omitted"`
		} `json:"sum"`
	} `json:"intervals"`
	End struct {
		Sent       *sum   `json:"sum_sent"`
		Received   *sum   `json:"sum_received"`
		CPU        cpu    `json:"cpu_utilization_percent"`
		Congestion string `json:"sender_tcp_congestion"`
	} `json:"end"`
}

type sum struct {
	Seconds     float64 `json:"seconds"`
	Bytes       float64 `json:"bytes"`
	Rate        float64 `json:"bits_per_second"`
	Retransmits *int64  `json:"retransmits"`
	Jitter      float64 `json:"jitter_ms"`
	Lost        int64   `json:"lost_packets"`
}

// parseIperf reads the output of iperf3 -J.
func parseIperf(text []byte) (*flow, error) {
	var out output
	if err := jsonlimit.Unmarshal(text, &out); err != nil {
		if len(text) == 0 {
			err = errors.New("the output of iperf3 is empty")
		}
		return nil, problem.New(problem.Failed, "the output of iperf3 is not complete JSON (%d bytes)", len(text)).Because(err).
			Try("check whether it was killed, or run it manually with -J")
	}
	if out.Error != nil {
		p := problem.New(problem.Failed, "iperf3 failed").Because(toolError(*out.Error))
		if strings.Contains(*out.Error, "buffer size") {
			return nil, p.Try("decrease window, or increase net.core.rmem_max and net.core.wmem_max at both ends")
		}
		return nil, p.Try("check that the far end is running and that no firewall blocks its port")
	}
	end := out.End
	if end.Sent == nil || end.Received == nil {
		return nil, problem.New(problem.Failed, "the output of %q has no sum_sent and sum_received", out.Start.Version).
			Try("the lab supports the output of iperf3 3.12 and compatible versions")
	}
	if end.Sent.Bytes <= 0 || end.Received.Seconds <= 0 {
		return nil, problem.New(problem.Failed, "iperf3 sent nothing (%.0f bytes in %.3f s)", end.Sent.Bytes,
			end.Received.Seconds)
	}
	var series []float64
	for _, i := range out.Intervals {
		if !i.Sum.Omitted && i.Sum.Seconds > 0.5 { // the last interval may be shorter than a second
			series = append(series, i.Sum.Rate)
		}
	}
	return &flow{
		series: series, Version: out.Start.Version, Sent: end.Sent.Rate, Received: end.Received.Rate,
		Bytes: end.Received.Bytes, SentBytes: end.Sent.Bytes,
		Seconds: end.Received.Seconds, Retransmits: end.Sent.Retransmits, Congestion: end.Congestion,
		Jitter: end.Received.Jitter / 1e3, Lost: end.Received.Lost, CPU: end.CPU, SendBuffer: out.Start.SendBuffer,
		ReceiveBuffer: out.Start.ReceiveBuffer,
	}, nil
}

// loss returns the part of the data sent that was not received, including the end of the stream.
func (f *flow) loss() float64 { return min(max(0, 1-f.Bytes/f.SentBytes), 1) }

// packetRate returns how many datagrams of the given size were received per second.
func (f *flow) packetRate(bytes int) float64 { return f.Bytes / float64(bytes) / f.Seconds }

// toolError is an error message printed by a tool. It is more specific than the exit status.
type toolError string

func (s toolError) Error() string { return string(s) }
