package disk

import (
	"slices"
	"strings"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// A matrix is the list of jobs behind one table or figure of a paper.
type matrix struct {
	name string
	jobs []job
}

// quick is the default matrix.
const quick = "quick"

// matrices returns all matrices.
func matrices() []matrix {
	const k, m = test.Bytes(1 << 10), test.Bytes(1 << 20)
	blocks := []test.Bytes{4 * k, 16 * k, 64 * k, 256 * k, 1 * m, 4 * m}
	threads := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	return []matrix{
		{quick, []job{
			{RW: "write", Block: m, Depth: 4}, {RW: "randread", Block: 4 * k}, {RW: "randread", Block: 4 * k, Threads: 16},
			{RW: "randrw", Block: 4 * k, Threads: 16},
		}},
		{"sequential write by depth", each([]int{1, 4, 16, 32},
			func(d int) job { return job{RW: "write", Block: m, Depth: d} })},
		{"sequential write by block", each(blocks, func(b test.Bytes) job { return job{RW: "write", Block: b} })},
		{"sequential read by block", each(blocks, func(b test.Bytes) job { return job{RW: "read", Block: b} })},
		{"random read 4k by threads",
			each(threads, func(n int) job { return job{RW: "randread", Block: 4 * k, Threads: n} })},
		{"random read by block at 512 threads", each(blocks[:5], func(b test.Bytes) job {
			return job{RW: "randread", Block: b, Threads: 512, Unit: bytesPerSecond}
		})},
		{"random write", each([]int{1, 16, 64}, func(n int) job { return job{RW: "randwrite", Block: 4 * k, Threads: n} })},
		{"mixed 70/30", each([]int{1, 16, 64}, func(n int) job {
			return job{RW: "randrw", Block: 4 * k, Threads: n, Read: 70}
		})},
	}
}

func each[T any](values []T, make func(T) job) []job {
	var all []job
	for _, v := range values {
		all = append(all, make(v))
	}
	return all
}

func matrixNames() []string {
	var all []string
	for _, m := range matrices() {
		all = append(all, m.name)
	}
	return all
}

// jobs returns the jobs of the matrices and then the others, without duplicates.
func (o *options) jobs() []job {
	var all []job
	add := func(j job) {
		j.setDefaults()
		if !slices.Contains(all, j) {
			all = append(all, j)
		}
	}
	for _, m := range matrices() {
		if slices.Contains(o.Matrices, m.name) {
			for _, j := range m.jobs {
				add(j)
			}
		}
	}
	for _, j := range o.Jobs {
		add(j)
	}
	return all
}

func (o *options) checkFio(wrong test.MistakeFunc) {
	for _, name := range o.Matrices {
		if slices.Contains(matrixNames(), name) {
			continue
		}
		cure := "known: " + strings.Join(matrixNames(), ", ")
		if near := problem.Suggest(name, matrixNames()); near != "" {
			cure = "did you mean " + near + "?"
		}
		wrong(cure, "matrices: there is no %q", name)
	}
	jobs := o.jobs()
	if len(jobs) == 0 {
		wrong("set matrices or jobs", "there is nothing to measure")
	}
	for _, j := range jobs {
		j.check(o.Size, wrong)
	}
	if !(o.Seconds >= 0.1 && o.Seconds <= 86400) {
		wrong("write a number from 0.1 to 86400", "seconds = %v", o.Seconds)
	}
	if !(o.WarmUp >= 0 && o.WarmUp <= 3600) {
		wrong("write a number from 0 to 3600", "warm_up = %v", o.WarmUp)
	}
}
