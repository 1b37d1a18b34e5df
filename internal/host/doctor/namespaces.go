package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstID is the first user and group id of the host for nodes. Each node gets a range of 65536.
const (
	firstID = 1_900_000_000
	lastID  = 1<<32 - 2
)

// namespaces checks whether nodes can have user namespaces.
func (m machine) namespaces() Facts {
	return Facts{m.userNamespaces(), m.idRange()}
}

func (m machine) userNamespaces() Fact {
	const name = "user namespaces"
	if most := m.read("proc/sys/user/max_user_namespaces"); most == "0" {
		return Fact{name, false, Required, "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=65536"}
	}
	return trialFact(name, Required, tryUserNamespace(),
		"run orrery as root, on the host itself or in a container that may create user namespaces")
}

// tryUserNamespace starts a process under the ids of a node. The process stops before its first
// instruction (ptrace(2)).
func tryUserNamespace() error {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: 65536}}
	p, err := os.StartProcess("/proc/self/exe", []string{"orrery: trial"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, Ptrace: true, Pdeathsig: syscall.SIGKILL,
	}})
	if err != nil {
		return err
	}
	killed := p.Kill()
	_, err = p.Wait()
	return errors.Join(killed, err)
}

// idRange looks for users to whom the host has assigned ids that nodes use (subuid(5)).
func (m machine) idRange() Fact {
	const name = "id range"
	var overlaps []string
	for _, file := range []string{"etc/subuid", "etc/subgid"} {
		for line := range strings.Lines(m.read(file)) {
			var first, count int64
			who, numbers, ok := strings.Cut(strings.TrimSpace(line), ":")
			if !ok {
				continue
			}
			if n, _ := fmt.Sscanf(numbers, "%d:%d", &first, &count); n == 2 && count > 0 && first+count > firstID &&
				first <= lastID {
				overlaps = append(overlaps, fmt.Sprintf("/%s: %s has ids %d to %d", file, who, first, first+count-1))
			}
		}
	}
	if len(overlaps) > 0 {
		return Fact{name, false, Recommended, strings.Join(overlaps, "; "),
			fmt.Sprintf("give them ids below %d: nodes use the ids from there on", firstID)}
	}
	return Fact{name, true, Recommended, fmt.Sprintf("no user has ids from %d on", firstID), ""}
}
