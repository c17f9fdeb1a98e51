package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is a ringwatch, a process that can be killed and started again over the same data.
type server struct {
	command []string
	data    string
	log     *os.File
	process *exec.Cmd
	gone    chan struct{}
}

// newServer has its data in a folder of this name, and its log beside it.
func newServer(folder, name string, command []string) (*server, error) {
	data := filepath.Join(folder, name)
	log, err := os.Create(data + ".log")
	if err != nil {
		return nil, err
	}
	return &server{command: append(command, "--data-dir", data), data: data, log: log}, nil
}

// kubeconfig is that of the server's administrator, once it is ready.
func (s *server) kubeconfig() string {
	return filepath.Join(s.data, "kubeconfig")
}

func (s *server) start() error {
	s.process = exec.Command(s.command[0], s.command[1:]...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	// It goes with this program, however that ends.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	s.gone = make(chan struct{})
	go func(process *exec.Cmd, gone chan struct{}) {
		_ = process.Wait()
		close(gone)
	}(s.process, s.gone)
	return nil
}

// ready waits until the server answers its own kubeconfig's user.
func (s *server) ready(ctx context.Context) (*rest.Config, error) {
	var config *rest.Config
	err := within(ctx, "the server is ready", time.Minute, func(ctx context.Context) error {
		select {
		case <-s.gone:
			return fmt.Errorf("it has ended: %v", s.process.ProcessState)
		default:
		}
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig()); err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return config, err
}

// kill takes the server away without a word, and waits until port and store are free.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	<-s.gone
}
