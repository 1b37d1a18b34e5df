package pack

import "orrery/internal/plan"

// Subplan returns some steps of a plan as a plan of their own, renumbered, in their order. It assumes
// that all other steps that they need are done.
func Subplan(some []*plan.Step) []*plan.Step {
	numbers := map[int]int{}
	all := make([]*plan.Step, len(some))
	for i, s := range some {
		one := *s
		one.N, one.Needs = i, nil
		for _, need := range s.Needs {
			if n, here := numbers[need]; here {
				one.Needs = append(one.Needs, n)
			}
		}
		numbers[s.N], all[i] = i, &one
	}
	return all
}
