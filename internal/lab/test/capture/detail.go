package capture

import (
	"fmt"
	"math"

	"orrery/internal/lab/search"
	"orrery/internal/lab/test"
)

// Detail is stored in the bundle for each run.
type Detail struct {
	Program string  `json:"program"`
	Heap    int64   `json:"heap"`   // data bytes
	Packet  int64   `json:"packet"` // bytes
	Sockets int     `json:"sockets"`
	Buffer  int     `json:"buffer"` // size that each socket obtained, in bytes
	Trial   float64 `json:"trial"`  // seconds per trial
	Trials  int     `json:"trials"` // number of trials of the search
	Idle    float64 `json:"idle"`   // busy share of all processors before the trials
	Curve   []Point `json:"curve"`  // all trials, in order
}

func (r *run) detail(found search.Result) Detail {
	return Detail{Program: r.Program, Heap: int64(r.Heap), Packet: int64(r.Packet), Sockets: r.Sockets,
		Buffer: r.pair.buffer(),
		Trial:  r.Trial.Seconds(), Trials: found.Trials, Idle: r.idle.Share(), Curve: r.points}
}

// bufferSeconds is how long the buffer should bridge while the receiver is not scheduled: some milliseconds
// are usual.
const bufferSeconds = 0.010 // s

// labels returns the reasons why the found rate is suspect.
func (r *run) labels(found search.Result) []test.Label {
	var all []test.Label
	got := r.pair.buffer()
	holds := float64(got*r.Sockets) * 8 / found.Rate
	switch {
	case got > 0 && got < int(r.Buffer):
		all = append(all, test.Label{Name: "rmem",
			Why:  fmt.Sprintf("the receiver requests a buffer of %d bytes, but some place permits only %d", r.Buffer, got),
			Cure: fmt.Sprintf("sysctl net.core.rmem_max=%d", r.Buffer)})
	case got > 0 && holds < bufferSeconds:
		need := int64(math.Ceil(found.Rate/8*bufferSeconds/float64(r.Sockets)/(1<<20))) << 20
		all = append(all, test.Label{Name: "rmem",
			Why:  fmt.Sprintf("the receiver's buffer of %d bytes holds only %.1f ms of packets at this rate", got, holds*1e3),
			Cure: fmt.Sprintf(`buffer = "%dMiB", and sysctl net.core.rmem_max=%d`, need>>20, need)})
	}
	if why := r.senderLimit(found); why != "" {
		all = append(all, test.Label{Name: atSender, Why: why, Where: "lossless rate",
			Cure: "give the sender its own processor, set gso = true or larger packets, or set most to what it reaches"})
	}
	return all
}

// fastest returns the highest rate that the sender reached, in bit/s.
func (r *run) fastest() (best float64) {
	for _, p := range r.points {
		best = max(best, p.Achieved)
	}
	return best
}

// senderLimit returns how the sender, and not the receiver, limited the found rate, or "" if it did
// not. The sender limited it if the next higher rate failed only because the sender did not reach
// that rate.
func (r *run) senderLimit(found search.Result) string {
	if found.Capped && (r.Most == 0 || found.Rate < float64(r.Most)*(1-r.Precision)) {
		return fmt.Sprintf("the sender never sent more than %.4g bit/s", r.fastest())
	}
	const same = 1e-6
	next, lossy := math.Inf(1), false
	for _, p := range r.points {
		if p.Search != "search" || p.Rate <= found.Rate*(1+same) || p.Rate > next*(1+same) {
			continue
		}
		if p.Rate < next*(1-same) {
			next, lossy = p.Rate, false
		}
		lossy = lossy || p.Valid && p.Received < p.Sent
	}
	if math.IsInf(next, 1) || lossy {
		return ""
	}
	return fmt.Sprintf("at the next rate, %.4g bit/s, the sender did not reach 99 %%", next)
}
