package facts

import "testing"

func TestUnlike(t *testing.T) {
	current := Facts{Host: "a", Kernel: Kernel{Release: "6.1", Version: "#1"},
		Processors: Processors{Model: "X", Threads: 4}}
	expect(t, "the same", current.Differences(current), nil)
	expect(t, "untold", current.Differences(Facts{}), nil)
	other := current
	other.Load, other.Processors.Clock = []float64{1}, 3e9
	expect(t, "what changes all the time", current.Differences(other), nil)
	other.Host, other.Kernel.Release, other.Processors.Threads = "b", "5.10", 8
	expect(t, "another", current.Differences(other), []string{"host: b then, a now", "kernel: 5.10 then, 6.1 now",
		"number of processors: 8 then, 4 now"})
}
