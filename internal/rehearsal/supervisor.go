package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"orrery/internal/host"
)

// readyLine is what a supervisor writes when all its hosts are up.
const readyLine = "up\n"

// A Supervisor runs hosts, and serves requests on its socket.
type Supervisor struct {
	o      Options
	keys   keys
	starts chan func() // functions for a thread that never ends: the kernel kills its children when it ends

	mu    sync.Mutex
	hosts []machine // by number; index 0 is not used
	cuts  map[int]Direction

	watches watches
}

// A machine is the first process of a host. If it ends, the kernel kills all other processes of the
// host.
type machine struct {
	init  *exec.Cmd
	ended chan struct{}
}

// runSupervisor is the role of a supervisor. It runs until its standard input is closed.
func runSupervisor([]string) (err error) {
	defer func() {
		if err != nil {
			fmt.Fprint(os.Stdout, err) // to the process that waits
		}
	}()
	var o Options
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	var lock *host.Lock
	ctx, cancel := context.WithTimeoutCause(context.Background(), startTimeout, fmt.Errorf("not within %s", startTimeout))
	defer cancel()
	err = retry(func() (err error) { // Sweep may hold the lock
		lock, err = host.WaitLock(ctx, set{o.State, o.Name}.lock(), host.Exclusive, "the lock of hosts "+o.Name)
		return err
	})
	if err != nil {
		return fmt.Errorf("hosts %s: %w", o.Name, err)
	}
	defer lock.Release()
	top, err := os.Open(o.State)
	if err != nil {
		return err
	}
	// This also keeps the file reachable: the garbage collector would close it, as only its number is used.
	defer top.Close()                                  //nolint:errcheck // it was only opened for its path
	state := fmt.Sprintf("/proc/self/fd/%d", top.Fd()) // works even after this process has changed its root
	k := &Supervisor{o: o, starts: make(chan func()), hosts: make([]machine, len(o.Places)+1), cuts: map[int]Direction{}}
	defer func() {
		err = errors.Join(err, k.end())
		err = errors.Join(err, set{state, o.Name}.removeDir())
	}()
	listening, err := net.Listen("unix", set{o.State, o.Name}.socket())
	if err != nil {
		return err
	}
	listening.(*net.UnixListener).SetUnlinkOnClose(false)
	if k.keys, err = newKeys(o.Places); err != nil {
		return err
	}
	if err := setupRoot(o, set{o.State, o.Name}.dir()); err != nil {
		return err
	}
	if err := makeSwitch(); err != nil {
		return err
	}
	host.GoOnLockedThread(func() {
		for start := range k.starts {
			start()
		}
	})
	if err := k.all(k.boot); err != nil {
		return err
	}
	go http.Serve(listening, k.methods()) //nolint:errcheck // it serves until this process ends
	if _, err := os.Stdout.WriteString(readyLine); err != nil {
		return err
	}
	os.Stdout.Close()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// all calls a function for all hosts concurrently.
func (k *Supervisor) all(do func(number int) error) error {
	errs := make([]error, len(k.o.Places)+1)
	var wait sync.WaitGroup
	for i := 1; i <= len(k.o.Places); i++ {
		wait.Go(func() { errs[i] = do(i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// end ends all hosts, and removes what the kernel would not.
func (k *Supervisor) end() error {
	err := k.all(k.kill)
	removeGroups(k.o.Name)
	return err
}

// boot starts a host and waits until its SSH server answers.
func (k *Supervisor) boot(number int) error {
	k.mu.Lock()
	running := k.hosts[number].init != nil
	k.mu.Unlock()
	if running {
		return fmt.Errorf("host %s is already running", k.o.Places[number-1].Name)
	}
	group := groupsOf(k.o.Name, portName(number))
	if err := group.Create(); err != nil {
		return err
	}
	orders, give, err := os.Pipe()
	if err != nil {
		return err
	}
	hear, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer give.Close()
	defer hear.Close()
	cmd := reexec(roleNewborn, group.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = orders, tell, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	started := make(chan error)
	k.starts <- func() { started <- cmd.Start() }
	err = <-started
	orders.Close()
	tell.Close()
	if err != nil {
		return err
	}
	m := machine{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ignore the error: it was killed
		close(m.ended)
	}()
	k.mu.Lock()
	k.hosts[number] = m
	err = k.plug(number)
	k.mu.Unlock()
	if err == nil {
		err = json.NewEncoder(give).
			Encode(hostConfig{Number: number, Places: k.o.Places, Keys: k.keys, Programs: k.o.Programs, Binds: k.o.Binds})
	}
	if err != nil {
		return errors.Join(err, k.kill(number))
	}
	if text, err := io.ReadAll(hear); err != nil || string(text) != readyLine {
		return errors.Join(fmt.Errorf("host %s did not come up: %s", k.o.Places[number-1].Name, text), err, k.kill(number))
	}
	return nil
}

// kill ends a host, if it runs.
func (k *Supervisor) kill(number int) error {
	k.mu.Lock()
	m := k.hosts[number]
	k.hosts[number] = machine{}
	k.mu.Unlock()
	if m.init == nil {
		return nil
	}
	group := groupsOf(k.o.Name, portName(number))
	err := m.init.Process.Kill()
	_ = group.SetFrozen(false) // on cgroup v1, a frozen process cannot die
	<-m.ended
	unplug(number)
	removeGroups(k.o.Name, portName(number))
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Pid sets pid to the supervisor's process ID.
func (k *Supervisor) Pid(_ int, pid *int) error {
	*pid = os.Getpid()
	return nil
}

// Description describes a supervisor's hosts.
type Description struct {
	State, Name string
	Places      []Place
}

// About sets about to the description of the supervisor's hosts.
func (k *Supervisor) About(_ int, about *Description) error {
	*about = Description{k.o.State, k.o.Name, k.o.Places}
	return nil
}

// Init sets pid to the process ID of the first process of a host.
func (k *Supervisor) Init(number int, pid *int) error {
	m, err := k.running(number)
	if err == nil {
		*pid = m.init.Process.Pid
	}
	return err
}

// running returns a host, or an error if it does not run.
func (k *Supervisor) running(number int) (machine, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if number < 1 || number > len(k.o.Places) {
		return machine{}, fmt.Errorf("host %d does not exist: there are %d", number, len(k.o.Places))
	}
	m := k.hosts[number]
	if m.init == nil {
		return machine{}, errors.New("it is not running")
	}
	select {
	case <-m.ended:
		return machine{}, errors.New("it has ended by itself")
	default:
		return m, nil
	}
}

// Boot starts a host that was killed.
func (k *Supervisor) Boot(number int, _ *int) error {
	if number < 1 || number > len(k.o.Places) {
		return fmt.Errorf("host %d does not exist: there are %d", number, len(k.o.Places))
	}
	return k.boot(number)
}

// Kill ends a host.
func (k *Supervisor) Kill(number int, _ *int) error {
	if _, err := k.running(number); err != nil {
		return err
	}
	return k.kill(number)
}

// A LinkState contains the direction in which a host's link is cut, or "" for none.
type LinkState struct {
	Host int
	Way  Direction
}

// SetLinkState cuts a host off, or restores its link.
func (k *Supervisor) SetLinkState(c LinkState, _ *int) error {
	if _, err := k.running(c.Host); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cuts[c.Host] = c.Way
	return k.applyCuts()
}

// A FreezeRequest contains whether a host is frozen.
type FreezeRequest struct {
	Host  int
	Still bool
}

// Freeze freezes or thaws a host.
func (k *Supervisor) Freeze(f FreezeRequest, _ *int) error {
	if _, err := k.running(f.Host); err != nil {
		return err
	}
	return groupsOf(k.o.Name, portName(f.Host)).SetFrozen(f.Still)
}

// A DiskRate limits the rate of a host's disk, or removes the limit if it is 0.
type DiskRate struct {
	Host int
	Rate int64
}

// SetDiskRate limits the rate of a host's disk.
func (k *Supervisor) SetDiskRate(s DiskRate, _ *int) error {
	if _, err := k.running(s.Host); err != nil {
		return err
	}
	device, err := deviceOf(s.Host)
	if err != nil {
		return err
	}
	for _, b := range diskLimits(mounted, groupsOf(k.o.Name, portName(s.Host)).Name(), device, s.Rate) {
		if err := os.WriteFile(b.file, []byte(b.text), 0); err != nil {
			return err
		}
	}
	return nil
}
