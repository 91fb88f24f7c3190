// What an exported package needs of ROS 2, as little as it needs: signatures and meaning are those of
// ros2_control, the code is for these tests alone. Every header that the package includes is this.
#ifndef ROS2_STUBS_HPP_
#define ROS2_STUBS_HPP_

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace rclcpp
{
struct Time {};
struct Duration {};
struct Logger
{
  std::string name;
};
inline Logger get_logger(const std::string & name) { return {name}; }

/// The text of the last error; one for all shared objects.
inline std::string & last_error()
{
  static std::string text;
  return text;
}

__attribute__((format(printf, 2, 3))) inline void log_error(const Logger & logger, const char * format, ...)
{
  char text[2048];
  va_list given;
  va_start(given, format);
  vsnprintf(text, sizeof text, format, given);
  va_end(given);
  last_error() = logger.name + ": " + text;
}

struct Parameter
{
  std::variant<bool, std::int64_t, std::string> value;
  bool as_bool() const { return std::get<bool>(value); }
  std::int64_t as_int() const { return std::get<std::int64_t>(value); }
  const std::string & as_string() const { return std::get<std::string>(value); }
};
}  // namespace rclcpp

#define RCLCPP_ERROR(logger, ...) ::rclcpp::log_error(logger, __VA_ARGS__)

namespace rclcpp_lifecycle
{
struct State {};
struct LifecycleNode
{
  std::string name;
  std::map<std::string, rclcpp::Parameter> parameters;
  const char * get_name() const { return name.c_str(); }
  rclcpp::Logger get_logger() const { return {name}; }
  rclcpp::Parameter get_parameter(const std::string & key) const { return parameters.at(key); }
};
}  // namespace rclcpp_lifecycle

namespace hardware_interface
{
constexpr char HW_IF_POSITION[] = "position";
constexpr char HW_IF_VELOCITY[] = "velocity";
constexpr char HW_IF_EFFORT[] = "effort";
constexpr char HW_IF_TORQUE[] = "torque";
constexpr char HW_IF_FORCE[] = "force";

struct JointInfo
{
  std::string name;
  std::vector<std::string> state_interfaces, command_interfaces;
  std::string role;
  double mechanical_reduction = 1.0, offset = 0.0;
  bool read_only = false;
};
using ActuatorInfo = JointInfo;

struct TransmissionInfo
{
  std::string name, type;
  std::vector<JointInfo> joints;
  std::vector<ActuatorInfo> actuators;
  std::unordered_map<std::string, std::string> parameters;
};

/// Of type double; `busy` behaves as a lock that another thread has, `foreign` as another type.
class Handle
{
public:
  explicit Handle(const std::string & prefix, const std::string & interface)
  : name_(prefix + "/" + interface)
  {
  }
  const std::string & get_name() const { return name_; }
  template <typename T = double>
  [[nodiscard]] std::optional<T> get_optional() const
  {
    if (foreign) {
      throw std::runtime_error("Data type of " + name_);
    }
    return busy ? std::nullopt : std::optional<T>(value_);
  }
  template <typename T>
  [[nodiscard]] bool set_value(const T & value)
  {
    if (!busy) {
      value_ = value;
    }
    return !busy;
  }
  bool busy = false, foreign = false;

private:
  std::string name_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
};

struct StateInterface : Handle
{
  using Handle::Handle;
  using SharedPtr = std::shared_ptr<StateInterface>;
};
struct CommandInterface : Handle
{
  using Handle::Handle;
  using SharedPtr = std::shared_ptr<CommandInterface>;
};

template <class Interface>
struct Loaned
{
  std::shared_ptr<Interface> lent;
  const std::string & get_name() const { return lent->get_name(); }
  template <typename T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned int = 10) const
  {
    return lent->template get_optional<T>();
  }
  template <typename T>
  [[nodiscard]] bool set_value(const T & value, unsigned int = 10)
  {
    return lent->set_value(value);
  }
};
using LoanedStateInterface = Loaned<StateInterface>;
using LoanedCommandInterface = Loaned<CommandInterface>;
}  // namespace hardware_interface

namespace transmission_interface
{
class Exception : public std::exception
{
public:
  explicit Exception(const std::string & text) : text_(text) {}
  const char * what() const noexcept override { return text_.c_str(); }

private:
  std::string text_;
};

class Handle
{
public:
  Handle(const std::string & prefix, const std::string & interface, double * value = nullptr)
  : prefix_(prefix), interface_(interface), value_(value)
  {
  }
  operator bool() const { return value_ != nullptr; }
  const std::string & get_interface_name() const { return interface_; }
  const std::string & get_prefix_name() const { return prefix_; }
  double get_value() const { return *value_; }
  void set_value(double value) { *value_ = value; }

private:
  std::string prefix_, interface_;
  double * value_;
};
struct ActuatorHandle : Handle
{
  using Handle::Handle;
};
struct JointHandle : Handle
{
  using Handle::Handle;
};

class Transmission
{
public:
  virtual ~Transmission() = default;
  virtual void configure(
    const std::vector<JointHandle> & joints, const std::vector<ActuatorHandle> & actuators) = 0;
  virtual std::vector<std::string> get_supported_joint_interfaces() const { return {}; }
  virtual std::vector<std::string> get_supported_actuator_interfaces() const { return {}; }
  virtual double get_actuator_position_offset() const { return 0.0; }
  virtual double get_joint_position_offset() const { return 0.0; }
  virtual void actuator_to_joint() = 0;
  virtual void joint_to_actuator() = 0;
  virtual std::size_t num_actuators() const = 0;
  virtual std::size_t num_joints() const = 0;
};

class TransmissionLoader
{
public:
  virtual ~TransmissionLoader() = default;
  virtual std::shared_ptr<Transmission> load(const hardware_interface::TransmissionInfo & info) = 0;
};
}  // namespace transmission_interface

namespace controller_interface
{
enum class CallbackReturn : std::uint8_t { SUCCESS = 97, FAILURE = 98, ERROR = 99 };
enum class return_type : std::uint8_t { OK = 0, ERROR = 1 };
enum class interface_configuration_type : std::uint8_t { ALL = 0, INDIVIDUAL = 1, NONE = 2 };
struct InterfaceConfiguration
{
  interface_configuration_type type = interface_configuration_type::NONE;
  std::vector<std::string> names = {};
};

class ChainableControllerInterface
{
public:
  virtual ~ChainableControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const { return node; }

  /// One cycle of the loop.
  return_type update(bool chained)
  {
    if (!chained && update_reference_from_subscribers({}, {}) != return_type::OK) {
      return return_type::ERROR;
    }
    return update_and_write_commands({}, {});
  }
  std::vector<hardware_interface::StateInterface::SharedPtr> exported_states()
  {
    return on_export_state_interfaces_list();
  }
  std::vector<hardware_interface::CommandInterface::SharedPtr> exported_references()
  {
    return on_export_reference_interfaces_list();
  }
  void assign_interfaces(
    std::vector<hardware_interface::LoanedCommandInterface> commands,
    std::vector<hardware_interface::LoanedStateInterface> states)
  {
    command_interfaces_ = std::move(commands);
    state_interfaces_ = std::move(states);
  }
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node =
    std::make_shared<rclcpp_lifecycle::LifecycleNode>();

protected:
  template <class T>
  void auto_declare(const std::string & key, const T & value)
  {
    if constexpr (std::is_same_v<T, int>) {
      node->parameters.insert({key, {std::int64_t{value}}});
    } else {
      node->parameters.insert({key, {value}});
    }
  }
  virtual std::vector<hardware_interface::StateInterface::SharedPtr>
  on_export_state_interfaces_list() = 0;
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() = 0;
  virtual return_type update_reference_from_subscribers(
    const rclcpp::Time &, const rclcpp::Duration &) = 0;
  virtual return_type update_and_write_commands(
    const rclcpp::Time &, const rclcpp::Duration &) = 0;
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;
};
}  // namespace controller_interface

/// A shared object has one plugin, which this function makes.
#define PLUGINLIB_EXPORT_CLASS(derived, base) \
  extern "C" base * make_plugin() { return new derived(); }

#endif  // ROS2_STUBS_HPP_
